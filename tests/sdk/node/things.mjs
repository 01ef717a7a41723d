// What every client is given: the gateway's address, keys, tools, and the checks of errors.

import assert from 'node:assert/strict';

const setting = (name) => {
  assert.ok(process.env[name], `${name} is set by stage.py`);
  return process.env[name];
};

export const gateway = setting('OMNIGLOT_GATEWAY');
export const key = setting('OMNIGLOT_KEY');
export const keyOfSome = setting('OMNIGLOT_KEY_OF_SOME');
export const keyOfNobody = setting('OMNIGLOT_KEY_OF_NOBODY');
export const bodyLimit = Number(setting('OMNIGLOT_BODY_LIMIT'));

export const formats = ['chat', 'messages', 'native', 'responses'];

// Only a hang lasts longer.
export const patience = { timeout: 60_000 };

export const odd = '👩‍👩‍👧‍👦 e\u0301 שלום a\u2028b\u2029c\u0085d 𝔘 «\\"»';

export const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

/** One pixel. */
export const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Statuses that an upstream may answer with. */
export const fromUpstream = [400, 401, 403, 404, 413, 429, 500, 503, 529];

export const brokenStreams = ['cut=8', 'no_end', 'stream_error=4', 'garbage=8'];

/** What a stream may die of after any of its events. */
export const deaths = ['cut', 'garbage', 'stream_error'];

/** The error that a promise is rejected with. */
export async function failure(promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  assert.fail(`no error came, but ${JSON.stringify(value)}`);
}

/** The text of a stream, and what it died of. */
export async function drain(opening, delta) {
  let text = '';
  try {
    for await (const event of await opening) {
      text += delta(event) ?? '';
    }
  } catch (error) {
    return { text, error };
  }
  return { text, error: null };
}
