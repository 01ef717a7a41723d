// The genai client: the native format.

import assert from 'node:assert/strict';
import test from 'node:test';

import { ApiError, GoogleGenAI } from '@google/genai';

import * as things from './things.mjs';

const connect = (apiKey) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: things.gateway, timeout: 60_000 } });
const client = connect(things.key);
const model = 'first-native';

const ask = (contents, { from = client, stream, ...more } = {}) => {
  const asked = { model, contents, ...more };
  return stream ? from.models.generateContentStream(asked) : from.models.generateContent(asked);
};

test('models', things.patience, async () => {
  const listed = [];
  for await (const each of await client.models.list()) listed.push(each.name);
  assert.ok(listed.includes(`models/${model}`) && listed.length === 8, listed.join());
  assert.equal((await client.models.get({ model })).name, `models/${model}`);
});

test('text', things.patience, async () => {
  assert.equal((await ask(things.odd)).text, `You said: ${things.odd}`);
});

test('stream', things.patience, async () => {
  const streamed = await things.drain(ask(things.odd, { stream: true }), (chunk) => chunk.text);
  assert.equal(streamed.error, null);
  assert.equal(streamed.text, `You said: ${things.odd}`);
});

test('tool loop with a signed thought', things.patience, async () => {
  const functionDeclarations = [{ name: 'get_weather', parametersJsonSchema: things.parameters }];
  const config = {
    tools: [{ functionDeclarations }],
    thinkingConfig: { includeThoughts: true },
  };
  const contents = [
    { role: 'user', parts: [{ text: 'mock:tool mock:thinking how is the weather' }] },
  ];
  const first = await ask(contents, { config });
  const [call] = first.functionCalls;
  assert.equal(call.name, 'get_weather');
  assert.deepEqual(call.args, { city: 'example' });
  const said = first.candidates[0].content;
  assert.ok(said.parts.find((part) => part.functionCall).thoughtSignature);
  const functionResponse = { id: call.id, name: call.name, response: { result: 'sunny' } };
  contents.push(said, { role: 'user', parts: [{ functionResponse }] });
  assert.match((await ask(contents, { config })).text, /^The tools answered: .*sunny/);
});

test('count tokens', things.patience, async () => {
  assert.ok((await client.models.countTokens({ model, contents: 'one two three' })).totalTokens > 0);
});

test('headers', things.patience, async () => {
  const { headers } = (await ask('hello')).sdkHttpResponse;
  assert.ok(headers['x-request-id']);
  assert.equal(headers['x-omniglot-upstream'], 'mock-native');
});

for (const stream of [false, true]) {
  const words = stream ? 'streaming: ' : '';

  for (const [sent, seen] of things.fromUpstream) {
    test(`${words}the upstream's ${sent}`, things.patience, async () => {
      const error = await things.failure(ask(`mock:error=${sent}`, { stream }));
      assert.ok(error instanceof ApiError, error.constructor.name);
      assert.equal(error.status, seen);
    });
  }

  test(`${words}the gateway's own errors`, things.patience, async () => {
    const cases = [
      [401, 'UNAUTHENTICATED', 'hello', { from: connect(things.keyOfNobody) }],
      [403, 'PERMISSION_DENIED', 'hello', { from: connect(things.keyOfSome), model: 'second-native' }],
      [404, 'NOT_FOUND', 'hello', { model: 'no-such-model' }],
      [413, 'INVALID_ARGUMENT', 'x'.repeat(things.bodyLimit), {}],
    ];
    for (const [status, kind, prompt, more] of cases) {
      const error = await things.failure(ask(prompt, { ...more, stream }));
      assert.ok(error instanceof ApiError, error.constructor.name);
      assert.equal(error.status, status);
      assert.match(error.message, new RegExp(kind));
    }
  });
}

for (const fault of things.brokenStreams) {
  test(`a stream that dies of ${fault}`, things.patience, async () => {
    const opening = ask(`mock:long=20 mock:${fault}`, { stream: true });
    const { text, error } = await things.drain(opening, (chunk) => chunk.text);
    assert.notEqual(text, '');
    assert.ok(error instanceof ApiError, `${error?.constructor.name}: ${error?.message}`);
  });
}
