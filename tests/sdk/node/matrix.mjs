// What every client is asked to do with every upstream format, whole and streamed.

import assert from 'node:assert/strict';
import test from 'node:test';

import * as things from './things.mjs';

/** Where an upstream puts a refusal: its ending, in words that every client has an ending for. */
const refused = { chat: 'refused', responses: 'refused', messages: 'filtered', native: 'end' };

/** Only these have a place of its own for the words of a refusal. */
const hasPlace = ['chat', 'responses'];

/** How everything begins that carries an upstream's proof through another format. */
const wrapped = 'b21uaWdsb3QvMS';

/** What the client of another format sees of too much to do: messages has its own status for it. */
const seen = (client, upstream, status) => {
  if (client === upstream || ![503, 529].includes(status)) return status;
  return client === 'messages' ? 529 : 503;
};

/** The upstream's own proof, out of the field of another format that carried it. */
function unwrapped(seal) {
  const [mark, ...proof] = Buffer.from(seal, 'base64').toString().split('\n');
  assert.match(mark, /^omniglot\/1 /);
  return proof.join('\n');
}

/** The proofs that an upstream was given back, and the thoughts where it takes them. */
const signed = {
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

/** All cases of one client format. */
export function cover(way) {
  const client = way.connect(things.key);

  test(`${way.name}: models`, things.patience, async () => {
    const { listed, got } = await way.models(client, 'first-chat');
    assert.ok(listed.includes('first-chat') && listed.length === 10, listed.join());
    assert.equal(got, 'first-chat');
  });

  for (const upstream of things.formats) pair(way, client, upstream);
}

function pair(way, client, upstream) {
  const same = way.name === upstream;
  const model = `first-${upstream}`;
  const check = (name, run) =>
    test(`${way.name} to ${upstream}: ${name}`, things.patience, run);
  const ask = (turns, more) =>
    way.ask(client, model, typeof turns === 'string' ? way.user(turns) : turns, more);
  const gather = (turns, more) =>
    way.gather(client, model, typeof turns === 'string' ? way.user(turns) : turns, more);
  const stream = (prompt, { from = client, model: asked = model } = {}) =>
    things.drain(way.stream(from, asked, way.user(prompt)), way.delta);

  check('a stream says what the whole answer says', async () => {
    const streamed = await stream(things.odd);
    assert.equal(streamed.error, null);
    assert.equal(streamed.text, `You said: ${things.odd}`);
    assert.equal(way.text(await gather('mock:long=30')), way.text(await ask('mock:long=30')));
  });

  check('a stream that pauses', async () => {
    const whole = way.text(await ask('mock:long=4'));
    const streamed = await stream('mock:long=4 mock:pace=100ms');
    assert.deepEqual([streamed.error, streamed.text], [null, whole]);
    assert.equal(way.text(await gather('mock:long=4 mock:pace=100ms')), whole);
  });

  check('headers', async () => {
    const headers = await way.headers(client, model);
    assert.ok(headers.get('x-request-id'));
    assert.equal(headers.get('x-omniglot-upstream'), `mock-${upstream}`);
  });

  if (way.countTokens) {
    check('count tokens', async () => {
      const counted = await way.countTokens(client, model, 'one two three');
      // Those who have no counter are not asked: the number is an estimate then.
      if (upstream === 'chat') {
        assert.ok(counted > 3);
      } else {
        assert.equal(counted, 3);
      }
    });
  }

  for (const [name, get] of [['whole', ask], ['streamed', gather]]) {
    const checked = (what, run) => check(`${what}, ${name}`, run);

    checked('text', async () => {
      assert.equal(way.text(await get(things.odd)), `You said: ${things.odd}`);
    });

    checked('counts', async () => {
      const reply = await get('mock:thinking mock:usage=11,4,7,3');
      assert.deepEqual(way.tally(reply), [11, 4, 7, 3]);
    });

    checked('tool loop with a thought', async () => {
      const turns = way.user('mock:thinking mock:tool how is the weather');
      const more = { ...way.tools(['get_weather']), ...way.thoughtful };
      const reply = await get(turns, more);
      const [call, ...others] = way.calls(reply);
      assert.deepEqual(others, []);
      assert.equal(call.name, 'get_weather');
      assert.deepEqual(call.given, { city: 'example' });
      const answered = way.follow(turns, reply, ['sunny']);
      assert.match(way.text(await get(answered, more)), /^The tools answered: .*sunny/);

      const { said, seal } = way.thought(reply);
      assert.match(said, /^The user wants an answer/);
      const again = way.follow(turns, reply, ['sunny'], 'mock:echo');
      const { body } = JSON.parse(way.text(await get(again, more)));
      if (upstream === 'chat') {
        assert.ok(!seal, 'chat does not sign');
        assert.equal(body.includes(said), same, 'and takes no thoughts of others');
      } else if (same) {
        assert.ok(body.includes(seal));
      } else {
        assert.ok(!body.includes(wrapped));
        const kept = upstream === 'native' ? null : said;
        assert.deepEqual(signed[upstream](JSON.parse(body)), [[kept, unwrapped(seal)]]);
      }
    });

    checked('parallel tools', async () => {
      const turns = way.user('mock:parallel=3 weather and time');
      const more = way.tools(['get_weather', 'get_time']);
      const reply = await get(turns, more);
      const calls = way.calls(reply);
      assert.deepEqual(
        calls.map((call) => call.name),
        ['get_weather', 'get_time', 'get_weather'],
      );
      // Native models do not number their calls; where another format needs it, the gateway does.
      const native = same && upstream === 'native';
      assert.equal(new Set(calls.map((call) => call.id)).size, native ? 1 : 3);
      const answered = way.follow(turns, reply, ['sunny', 'noon', 'rainy']);
      assert.match(way.text(await get(answered, more)), /sunny.*noon.*rainy/);
    });

    checked('picture', async () => {
      const reply = await get(way.user('mock:echo what is this', things.picture));
      const { body } = JSON.parse(way.text(reply));
      assert.ok(body.includes(things.picture) && body.includes('image/png'), body);
    });

    checked('shape', async () => {
      const made = JSON.parse(way.text(await get('a city, please', way.shape(things.parameters))));
      assert.deepEqual(made, { city: 'example' });
    });
  }

  for (const [name, end] of [
    ['whole', async (prompt) => way.outcome(await ask(prompt))],
    ['streamed', (prompt) => way.streamOutcome(client, model, way.user(prompt))],
  ]) {
    for (const ending of ['length', 'filtered']) {
      check(`stopped by ${ending}, ${name}`, async () => {
        const expected = [way.endings[ending], '', 'You said: a tale'];
        assert.deepEqual(await end(`a tale mock:${ending}`), expected);
      });
    }

    check(`refusal, ${name}`, async () => {
      const words = 'I cannot help with that.';
      const ending = way.endings[same ? 'refused' : refused[upstream]];
      const told = [way.name, upstream].every((format) => hasPlace.includes(format));
      const expected = told ? [ending, words, ''] : [ending, '', words];
      assert.deepEqual(await end('mock:refusal something bad'), expected);
    });
  }

  const failing = [
    ['whole', (prompt, more = {}) =>
      things.failure(way.ask(more.from ?? client, more.model ?? model, way.user(prompt)))],
    ['streamed', async (prompt, more) => (await stream(prompt, more)).error],
  ];
  for (const [name, failure] of failing) {
    for (const status of things.fromUpstream) {
      check(`the upstream's ${status}, ${name}`, async () => {
        const ours = [401, 403].includes(status);
        const expected = ours ? 502 : seen(way.name, upstream, status);
        const error = await failure(`mock:error=${status},as-it-was-told`);
        assert.ok(error instanceof way.classOf(expected), error?.constructor.name);
        assert.equal(error.status, expected);
        assert.equal(error.message.includes('as-it-was-told'), !ours);
        if (status === 429 && error.headers) assert.equal(error.headers.get('retry-after'), '7');
      });
    }

    check(`the gateway's own errors, ${name}`, async () => {
      const cases = [
        [401, 'hello', { from: way.connect(things.keyOfNobody) }],
        [403, 'hello', { from: way.connect(things.keyOfSome), model: `second-${upstream}` }],
        [404, 'hello', { model: 'no-such-model' }],
        [413, 'x'.repeat(things.bodyLimit), {}],
      ];
      for (const [status, prompt, more] of cases) {
        const error = await failure(prompt, more);
        assert.ok(error instanceof way.classOf(status), error?.constructor.name);
        assert.equal(error.status, status);
        assert.equal(way.kindOf(error), way.kinds[status]);
      }
    });
  }

  for (const fault of things.brokenStreams) {
    check(`a stream that dies of ${fault}`, async () => {
      const prompt = `mock:long=20 mock:${fault}`;
      const { text, error } = await stream(prompt);
      assert.notEqual(text, '');
      assert.ok(error instanceof way.streamError, `${error?.constructor.name}: ${error?.message}`);
      // Told by the gateway, not by a connection that breaks.
      assert.doesNotMatch(error.constructor.name, /Connection/);
      if (fault.startsWith('stream_error')) assert.match(error.message, /as it was told/);
      const gathered = await things.failure(gather(prompt));
      assert.ok(gathered instanceof way.helperError, gathered.constructor.name);
    });
  }

  for (const fault of things.deaths) {
    check(`a stream that dies of ${fault} after any event`, async () => {
      // Twenty words are twenty deltas at least: none of these comes behind the end.
      for (let count = 0; count <= 20; count += 1) {
        const prompt = `mock:long=20 mock:${fault}=${count}`;
        const { text, error } = await stream(prompt);
        const seen = `${count}, after "${text}": ${error?.constructor.name}: ${error?.message}`;
        assert.ok(error instanceof way.streamError, seen);
        assert.doesNotMatch(error.constructor.name, /Connection/, seen);
        assert.ok(error.message, seen);
        const gathered = await things.failure(gather(prompt));
        assert.ok(gathered instanceof way.helperError, `${count}: ${gathered.constructor.name}`);
      }
    });
  }
}
