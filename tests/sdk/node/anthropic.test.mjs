// The anthropic client: the messages format.

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import * as things from './things.mjs';

const connect = (apiKey) =>
  new Anthropic({ baseURL: things.gateway, apiKey, maxRetries: 0, timeout: 60_000 });
const client = connect(things.key);
const model = 'first-messages';

const classes = {
  400: Anthropic.BadRequestError,
  401: Anthropic.AuthenticationError,
  403: Anthropic.PermissionDeniedError,
  404: Anthropic.NotFoundError,
  413: Anthropic.APIError,
  429: Anthropic.RateLimitError,
};
const classOf = (status) => (status >= 500 ? Anthropic.InternalServerError : classes[status]);

const body = (prompt, more = {}) => ({
  model,
  max_tokens: 1024,
  messages: [{ role: 'user', content: prompt }],
  ...more,
});
const ask = (prompt, { from = client, ...more } = {}) => from.messages.create(body(prompt, more));
const text = (reply) => reply.content.map((block) => block.text ?? '').join('');
const delta = (event) => (event.type === 'content_block_delta' ? event.delta.text : '');

test('models', things.patience, async () => {
  const listed = [];
  for await (const each of client.models.list()) listed.push(each.id);
  assert.ok(listed.includes(model) && listed.length === 8, listed.join());
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('text', things.patience, async () => {
  assert.equal(text(await ask(things.odd)), `You said: ${things.odd}`);
});

test('stream', things.patience, async () => {
  const streamed = await things.drain(ask(things.odd, { stream: true }), delta);
  assert.equal(streamed.error, null);
  assert.equal(streamed.text, `You said: ${things.odd}`);
  const gathered = await client.messages.stream(body('mock:long=30')).finalText();
  assert.equal(gathered, text(await ask('mock:long=30')));
});

test('tool loop with a signed thought', things.patience, async () => {
  const tools = [{ name: 'get_weather', input_schema: things.parameters }];
  const more = { tools, thinking: { type: 'adaptive' } };
  const first = await ask('mock:tool mock:thinking how is the weather', more);
  assert.equal(first.stop_reason, 'tool_use');
  const [thought, call] = first.content;
  assert.ok(thought.signature);
  assert.equal(call.name, 'get_weather');
  assert.deepEqual(call.input, { city: 'example' });
  const result = { type: 'tool_result', tool_use_id: call.id, content: 'sunny' };
  const messages = [
    { role: 'user', content: 'mock:tool mock:thinking how is the weather' },
    { role: 'assistant', content: first.content },
    { role: 'user', content: [result] },
  ];
  assert.match(text(await ask('', { ...more, messages })), /^The tools answered: .*sunny/);
});

test('count tokens', things.patience, async () => {
  const messages = [{ role: 'user', content: 'one two three' }];
  assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
});

test('headers', things.patience, async () => {
  const { response } = await ask('hello').withResponse();
  assert.ok(response.headers.get('x-request-id'));
  assert.equal(response.headers.get('x-omniglot-upstream'), 'mock-messages');
});

for (const stream of [false, true]) {
  const words = stream ? 'streaming: ' : '';

  for (const [sent, seen] of things.fromUpstream) {
    test(`${words}the upstream's ${sent}`, things.patience, async () => {
      const error = await things.failure(ask(`mock:error=${sent}`, { stream }));
      assert.ok(error instanceof classOf(seen), error.constructor.name);
      assert.equal(error.status, seen);
      if (seen === 429) assert.equal(error.headers.get('retry-after'), '7');
    });
  }

  test(`${words}the gateway's own errors`, things.patience, async () => {
    const cases = [
      [401, 'authentication_error', 'hello', { from: connect(things.keyOfNobody) }],
      [403, 'permission_error', 'hello', { from: connect(things.keyOfSome), model: 'second-messages' }],
      [404, 'not_found_error', 'hello', { model: 'no-such-model' }],
      [413, 'request_too_large', 'x'.repeat(things.bodyLimit), {}],
    ];
    for (const [status, kind, prompt, more] of cases) {
      const error = await things.failure(ask(prompt, { ...more, stream }));
      assert.ok(error instanceof classOf(status), error.constructor.name);
      assert.equal(error.status, status);
      assert.equal(error.error.error.type, kind);
    }
  });
}

for (const fault of things.brokenStreams) {
  test(`a stream that dies of ${fault}`, things.patience, async () => {
    const prompt = `mock:long=20 mock:${fault}`;
    const streamed = await things.drain(ask(prompt, { stream: true }), delta);
    assert.notEqual(streamed.text, '');
    assert.ok(streamed.error instanceof Anthropic.APIError, `${streamed.error?.constructor.name}`);
    assert.ok(!(streamed.error instanceof Anthropic.APIConnectionError));
    const error = await things.failure(client.messages.stream(body(prompt)).finalText());
    assert.ok(error instanceof Anthropic.AnthropicError, error.constructor.name);
  });
}
