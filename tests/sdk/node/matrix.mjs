// The tests of every client with every upstream format, with JSON and with streams.

import assert from 'node:assert/strict';
import test from 'node:test';

import * as setup from './setup.mjs';

/** The finish reason of a refusal, by the upstream's format. */
const refusalReasons = { chat: 'refused', responses: 'refused', messages: 'filtered', native: 'end' };

/** The formats with a field for the text of a refusal. */
const withRefusalField = ['chat', 'responses'];

/** The prefix of an upstream's signature in a field of another format. */
const wrappedPrefix = 'b21uaWdsb3QvMS';

/** Returns the status that the client sees: only messages has 529; without translation a status is kept. */
const expectedStatus = (client, upstream, status) => {
  if (client === upstream || ![503, 529].includes(status)) return status;
  return client === 'messages' ? 529 : 503;
};

/** Returns the upstream's signature from a field of another format. */
function unwrapSignature(signature) {
  const [prefix, ...lines] = Buffer.from(signature, 'base64').toString().split('\n');
  assert.match(prefix, /^omniglot\/1 /);
  return lines.join('\n');
}

/** Return text, if there is one, and signature of the reasoning in a request to an upstream. */
const returnedSignatures = {
  messages: ({ messages }) =>
    messages
      .flatMap((turn) => (turn.role === 'assistant' ? turn.content : []))
      .filter((block) => block.type === 'thinking')
      .map((block) => [block.thinking, block.signature]),
  responses: ({ input }) =>
    input
      .filter((item) => item.type === 'reasoning')
      .map((item) => [item.summary[0].text, `${item.id}\n${item.encrypted_content}`]),
  native: ({ contents }) =>
    contents
      .flatMap((content) => content.parts)
      .filter((part) => part.functionCall)
      .map((part) => [null, part.thoughtSignature]),
};

/** Runs all tests of one client format. */
export function testClient(adapter) {
  const client = adapter.connect(setup.key);

  test(`${adapter.name}: models`, setup.testOptions, async () => {
    const { listed, got } = await adapter.models(client, 'first-chat');
    assert.ok(listed.includes('first-chat') && listed.length === 19, listed.join());
    assert.equal(got, 'first-chat');
  });

  for (const upstream of setup.formats) testPair(adapter, client, upstream);
}

/** Runs the tests of a client format with an upstream format. */
function testPair(adapter, client, upstream) {
  const same = adapter.name === upstream;
  const model = `first-${upstream}`;
  const check = (name, run) =>
    test(`${adapter.name} to ${upstream}: ${name}`, setup.testOptions, run);
  const send = (turns, more) =>
    adapter.send(client, model, typeof turns === 'string' ? adapter.user(turns) : turns, more);
  const collectStream = (turns, more) =>
    adapter.collectStream(client, model, typeof turns === 'string' ? adapter.user(turns) : turns, more);
  const stream = (prompt, { from = client, model: request = model } = {}) =>
    setup.drain(adapter.stream(from, request, adapter.user(prompt)), adapter.delta);

  check('a stream has the text of the whole response', async () => {
    const streamed = await stream(setup.unusualText);
    assert.equal(streamed.error, null);
    assert.equal(streamed.text, `You said: ${setup.unusualText}`);
    assert.equal(adapter.text(await collectStream('mock:long=30')), adapter.text(await send('mock:long=30')));
  });

  check('a stream that pauses', async () => {
    const whole = adapter.text(await send('mock:long=4'));
    const streamed = await stream('mock:long=4 mock:pace=100ms');
    assert.deepEqual([streamed.error, streamed.text], [null, whole]);
    assert.equal(adapter.text(await collectStream('mock:long=4 mock:pace=100ms')), whole);
  });

  check('headers', async () => {
    const headers = await adapter.headers(client, model);
    assert.ok(headers.get('x-request-id'));
    assert.equal(headers.get('x-omniglot-upstream'), `mock-${upstream}`);
  });

  if (adapter.countTokens) {
    check('count tokens', async () => {
      const counted = await adapter.countTokens(client, model, 'one two three');
      // Chat has no endpoint that counts tokens, so the number is an estimate.
      if (upstream === 'chat') {
        assert.ok(counted > 3);
      } else {
        assert.equal(counted, 3);
      }
    });
  }

  for (const [name, get] of [['whole', send], ['streamed', collectStream]]) {
    const checked = (what, run) => check(`${what}, ${name}`, run);

    checked('text', async () => {
      assert.equal(adapter.text(await get(setup.unusualText)), `You said: ${setup.unusualText}`);
    });

    checked('counts', async () => {
      const response = await get('mock:thinking mock:usage=11,4,7,3');
      assert.deepEqual(adapter.usageDetails(response), [11, 4, 7, 3]);
    });

    checked('tool loop with reasoning', async () => {
      const turns = adapter.user('mock:thinking mock:tool how is the weather');
      const more = { ...adapter.tools(['get_weather']), ...adapter.reasoningOptions };
      const response = await get(turns, more);
      const [call, ...others] = adapter.toolCalls(response);
      assert.deepEqual(others, []);
      assert.equal(call.name, 'get_weather');
      assert.deepEqual(call.args, { city: 'example' });
      const next = adapter.appendToolResults(turns, response, ['sunny']);
      assert.match(adapter.text(await get(next, more)), /^The tools answered: .*sunny/);

      const { text, signature } = adapter.reasoning(response);
      assert.match(text, /^The user wants an answer/);
      const again = adapter.appendToolResults(turns, response, ['sunny'], 'mock:echo');
      const { body } = JSON.parse(adapter.text(await get(again, more)));
      if (upstream === 'chat') {
        assert.ok(!signature, 'chat does not sign');
        assert.equal(body.includes(text), same, 'and takes no reasoning of other formats');
      } else if (same) {
        assert.ok(body.includes(signature));
      } else {
        assert.ok(!body.includes(wrappedPrefix));
        const returnedText = upstream === 'native' ? null : text;
        assert.deepEqual(returnedSignatures[upstream](JSON.parse(body)), [[returnedText, unwrapSignature(signature)]]);
      }
    });

    checked('parallel tools', async () => {
      const turns = adapter.user('mock:parallel=3 weather and time');
      const more = adapter.tools(['get_weather', 'get_time']);
      const response = await get(turns, more);
      const calls = adapter.toolCalls(response);
      assert.deepEqual(
        calls.map((call) => call.name),
        ['get_weather', 'get_time', 'get_weather'],
      );
      // Native models send no ids of calls; the gateway adds them where another format needs them.
      const native = same && upstream === 'native';
      assert.equal(new Set(calls.map((call) => call.id)).size, native ? 1 : 3);
      const next = adapter.appendToolResults(turns, response, ['sunny', 'noon', 'rainy']);
      assert.match(adapter.text(await get(next, more)), /sunny.*noon.*rainy/);
    });

    checked('image', async () => {
      const response = await get(adapter.user('mock:echo what is this', setup.image));
      const { body } = JSON.parse(adapter.text(response));
      assert.ok(body.includes(setup.image) && body.includes('image/png'), body);
    });

    checked('structured output', async () => {
      const made = JSON.parse(adapter.text(await get('a city, please', adapter.structuredOutput(setup.parameters))));
      assert.deepEqual(made, { city: 'example' });
    });
  }

  for (const [name, end] of [
    ['whole', async (prompt) => adapter.outcome(await send(prompt))],
    ['streamed', (prompt) => adapter.streamOutcome(client, model, adapter.user(prompt))],
  ]) {
    for (const ending of ['length', 'filtered']) {
      check(`stopped by ${ending}, ${name}`, async () => {
        const expected = [adapter.finishReasons[ending], '', 'You said: a tale'];
        assert.deepEqual(await end(`a tale mock:${ending}`), expected);
      });
    }

    check(`refusal, ${name}`, async () => {
      const words = 'I cannot help with that.';
      const finishReason = adapter.finishReasons[same ? 'refused' : refusalReasons[upstream]];
      const bothHaveField = [adapter.name, upstream].every((format) => withRefusalField.includes(format));
      const expected = bothHaveField ? [finishReason, words, ''] : [finishReason, '', words];
      assert.deepEqual(await end('mock:refusal something bad'), expected);
    });
  }

  const failing = [
    ['whole', (prompt, more = {}) =>
      setup.failure(adapter.send(more.from ?? client, more.model ?? model, adapter.user(prompt)))],
    ['streamed', async (prompt, more) => (await stream(prompt, more)).error],
  ];
  for (const [name, failure] of failing) {
    for (const status of setup.upstreamStatuses) {
      check(`the upstream's ${status}, ${name}`, async () => {
        const isHidden = [401, 403].includes(status);
        const expected = isHidden ? 502 : expectedStatus(adapter.name, upstream, status);
        const error = await failure(`mock:error=${status},as-it-was-told`);
        assert.ok(error instanceof adapter.errorClass(expected), error?.constructor.name);
        assert.equal(error.status, expected);
        assert.equal(error.message.includes('as-it-was-told'), !isHidden);
        if (status === 429 && error.headers) assert.equal(error.headers.get('retry-after'), '7');
      });
    }

    check(`the gateway's own errors, ${name}`, async () => {
      const cases = [
        [401, 'hello', { from: adapter.connect(setup.unknownKey) }],
        [403, 'hello', { from: adapter.connect(setup.limitedKey), model: `second-${upstream}` }],
        [404, 'hello', { model: 'no-such-model' }],
        [413, 'x'.repeat(setup.bodyLimit), {}],
      ];
      for (const [status, prompt, more] of cases) {
        const error = await failure(prompt, more);
        assert.ok(error instanceof adapter.errorClass(status), error?.constructor.name);
        assert.equal(error.status, status);
        assert.equal(adapter.errorType(error), adapter.errorTypes[status]);
      }
    });
  }

  for (const fault of setup.brokenStreams) {
    check(`a stream broken by ${fault}`, async () => {
      const prompt = `mock:long=20 mock:${fault}`;
      const { text, error } = await stream(prompt);
      assert.notEqual(text, '');
      assert.ok(error instanceof adapter.streamError, `${error?.constructor.name}: ${error?.message}`);
      // The gateway sends an error event; the connection does not break.
      assert.doesNotMatch(error.constructor.name, /Connection/);
      if (fault.startsWith('stream_error')) assert.match(error.message, /as it was told/);
      const rejected = await setup.failure(collectStream(prompt));
      assert.ok(rejected instanceof adapter.helperError, rejected.constructor.name);
    });
  }

  for (const fault of setup.streamFaults) {
    check(`a stream broken by ${fault} after any event`, async () => {
      // Twenty words are at least twenty deltas, so each of these comes before the end.
      for (let count = 0; count <= 20; count += 1) {
        const prompt = `mock:long=20 mock:${fault}=${count}`;
        const { text, error } = await stream(prompt);
        const seen = `${count}, after "${text}": ${error?.constructor.name}: ${error?.message}`;
        assert.ok(error instanceof adapter.streamError, seen);
        assert.doesNotMatch(error.constructor.name, /Connection/, seen);
        assert.ok(error.message, seen);
        const rejected = await setup.failure(collectStream(prompt));
        assert.ok(rejected instanceof adapter.helperError, `${count}: ${rejected.constructor.name}`);
      }
    });
  }
}
