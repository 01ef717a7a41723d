// The openai client: the chat and the responses format.

import assert from 'node:assert/strict';
import test from 'node:test';

import OpenAI from 'openai';

import * as things from './things.mjs';

const connect = (apiKey) =>
  new OpenAI({ baseURL: `${things.gateway}/v1`, apiKey, maxRetries: 0, timeout: 60_000 });
const client = connect(things.key);

const classes = {
  400: OpenAI.BadRequestError,
  401: OpenAI.AuthenticationError,
  403: OpenAI.PermissionDeniedError,
  404: OpenAI.NotFoundError,
  413: OpenAI.APIError,
  429: OpenAI.RateLimitError,
};
const classOf = (status) => (status >= 500 ? OpenAI.InternalServerError : classes[status]);

const chat = {
  name: 'chat',
  model: 'first-chat',
  otherModel: 'second-chat',
  ask: (prompt, { from = client, model = 'first-chat', stream } = {}) =>
    from.chat.completions.create({ model, stream, messages: [{ role: 'user', content: prompt }] }),
  text: (reply) => reply.choices[0].message.content,
  delta: (event) => event.choices[0]?.delta.content,
  loop: async () => {
    const tools = [
      { type: 'function', function: { name: 'get_weather', parameters: things.parameters } },
    ];
    const messages = [{ role: 'user', content: 'mock:tool how is the weather' }];
    const asked = { model: 'first-chat', tools };
    const first = await client.chat.completions.create({ ...asked, messages });
    const [call] = first.choices[0].message.tool_calls;
    const result = { role: 'tool', tool_call_id: call.id, content: 'sunny' };
    messages.push(first.choices[0].message, result);
    const last = await client.chat.completions.create({ ...asked, messages });
    const { name, arguments: given } = call.function;
    return { name, given: JSON.parse(given), said: last.choices[0].message.content };
  },
  gather: (prompt) =>
    client.chat.completions
      .stream({ model: 'first-chat', messages: [{ role: 'user', content: prompt }] })
      .finalContent(),
};

const responses = {
  name: 'responses',
  model: 'first-responses',
  otherModel: 'second-responses',
  ask: (prompt, { from = client, model = 'first-responses', stream } = {}) =>
    from.responses.create({ model, stream, input: prompt, store: false }),
  text: (reply) => reply.output_text,
  delta: (event) => (event.type === 'response.output_text.delta' ? event.delta : ''),
  loop: async () => {
    const tools = [
      { type: 'function', name: 'get_weather', parameters: things.parameters, strict: true },
    ];
    const input = [{ role: 'user', content: 'mock:tool mock:thinking how is the weather' }];
    const include = ['reasoning.encrypted_content'];
    const asked = { model: 'first-responses', tools, store: false, include };
    const first = await client.responses.create({ ...asked, input });
    assert.ok(first.output.find((item) => item.type === 'reasoning').encrypted_content);
    const call = first.output.find((item) => item.type === 'function_call');
    const result = { type: 'function_call_output', call_id: call.call_id, output: 'sunny' };
    input.push(...first.output, result);
    const last = await client.responses.create({ ...asked, input });
    return { name: call.name, given: JSON.parse(call.arguments), said: last.output_text };
  },
  gather: async (prompt) => {
    const gathered = client.responses.stream({ model: 'first-responses', input: prompt });
    return (await gathered.finalResponse()).output_text;
  },
};

test('models', things.patience, async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  assert.ok(listed.includes('first-chat') && listed.length === 8, listed.join());
  assert.equal((await client.models.retrieve('first-chat')).id, 'first-chat');
});

for (const way of [chat, responses]) {
  test(`${way.name}: text`, things.patience, async () => {
    assert.equal(way.text(await way.ask(things.odd)), `You said: ${things.odd}`);
  });

  test(`${way.name}: stream`, things.patience, async () => {
    const { text, error } = await things.drain(way.ask(things.odd, { stream: true }), way.delta);
    assert.equal(error, null);
    assert.equal(text, `You said: ${things.odd}`);
    assert.equal(await way.gather('mock:long=30'), way.text(await way.ask('mock:long=30')));
  });

  test(`${way.name}: tool loop`, things.patience, async () => {
    const { name, given, said } = await way.loop();
    assert.equal(name, 'get_weather');
    assert.deepEqual(given, { city: 'example' });
    assert.match(said, /^The tools answered: .*sunny/);
  });

  test(`${way.name}: headers`, things.patience, async () => {
    const { response } = await way.ask('hello').withResponse();
    assert.ok(response.headers.get('x-request-id'));
    assert.equal(response.headers.get('x-omniglot-upstream'), `mock-${way.name}`);
  });

  for (const stream of [false, true]) {
    const words = `${way.name}${stream ? ', streaming' : ''}`;

    for (const [sent, seen] of things.fromUpstream) {
      test(`${words}: the upstream's ${sent}`, things.patience, async () => {
        const error = await things.failure(way.ask(`mock:error=${sent}`, { stream }));
        assert.ok(error instanceof classOf(seen), error.constructor.name);
        assert.equal(error.status, seen);
        if (seen === 429) assert.equal(error.headers.get('retry-after'), '7');
      });
    }

    test(`${words}: the gateway's own errors`, things.patience, async () => {
      const cases = [
        [401, 'hello', { from: connect(things.keyOfNobody) }],
        [403, 'hello', { from: connect(things.keyOfSome), model: way.otherModel }],
        [404, 'hello', { model: 'no-such-model' }],
        [413, 'x'.repeat(things.bodyLimit), {}],
      ];
      for (const [status, prompt, more] of cases) {
        const error = await things.failure(way.ask(prompt, { ...more, stream }));
        assert.ok(error instanceof classOf(status), error.constructor.name);
        assert.equal(error.status, status);
      }
    });
  }

  for (const fault of things.brokenStreams) {
    test(`${way.name}: a stream that dies of ${fault}`, things.patience, async () => {
      const prompt = `mock:long=20 mock:${fault}`;
      const { text, error } = await things.drain(way.ask(prompt, { stream: true }), way.delta);
      assert.notEqual(text, '');
      assert.ok(error instanceof OpenAI.APIError, `${error?.constructor.name}`);
      assert.ok(!(error instanceof OpenAI.APIConnectionError));
      assert.ok((await things.failure(way.gather(prompt))) instanceof OpenAI.OpenAIError);
    });
  }
}
