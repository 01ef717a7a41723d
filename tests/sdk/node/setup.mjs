// The setup of every test: the gateway's address, keys, samples, and functions that catch errors.

import assert from 'node:assert/strict';

const environmentVariable = (name) => {
  assert.ok(process.env[name], `${name} is set by processes.py`);
  return process.env[name];
};

export const gateway = environmentVariable('OMNIGLOT_GATEWAY');
export const key = environmentVariable('OMNIGLOT_KEY');
export const limitedKey = environmentVariable('OMNIGLOT_LIMITED_KEY');
export const unknownKey = environmentVariable('OMNIGLOT_UNKNOWN_KEY');
export const bodyLimit = Number(environmentVariable('OMNIGLOT_BODY_LIMIT'));

export const formats = ['chat', 'messages', 'native', 'responses'];

// Only a hang reaches this timeout.
export const testOptions = { timeout: 60_000 };

export const unusualText = '👩‍👩‍👧‍👦 e\u0301 שלום a\u2028b\u2029c\u0085d 𝔘 «\\"»';

export const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

/** An image of one pixel. */
export const image =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Error statuses of an upstream. */
export const upstreamStatuses = [400, 401, 403, 404, 413, 429, 500, 503, 529];

export const brokenStreams = ['cut=8', 'no_end', 'stream_error=4', 'garbage=8'];

/** Faults of a stream that can come after any of its events. */
export const streamFaults = ['cut', 'garbage', 'stream_error'];

/** Returns the error that a promise is rejected with. */
export async function failure(promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  assert.fail(`no error, but ${JSON.stringify(value)}`);
}

/** Reads a stream, and returns its text and its error. */
export async function drain(stream, delta) {
  let text = '';
  try {
    for await (const event of await stream) {
      text += delta(event) ?? '';
    }
  } catch (error) {
    return { text, error };
  }
  return { text, error: null };
}
