// Tests the embeddings of the openai client and of the google client.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';

import * as setup from './setup.mjs';

const models = ['vector-chat', 'vector-native', 'vector-responses'];
const texts = ['cat', 'a dog says "wow"', '日本語'];

const openai = new OpenAI({ baseURL: `${setup.gateway}/v1`, apiKey: setup.key, maxRetries: 0 });
const google = new GoogleGenAI({
  apiKey: setup.key,
  httpOptions: { baseUrl: setup.gateway },
});

const assertClose = (one, other) => {
  assert.equal(one.length, other.length);
  one.forEach((number, index) => assert.ok(Math.abs(number - other[index]) < 1e-6));
};

for (const model of models) {
  test(`embeddings of ${model}`, setup.testOptions, async () => {
    const input = { model, input: texts };
    const byDefault = await openai.embeddings.create(input);
    const floats = await openai.embeddings.create({ ...input, encoding_format: 'float' });
    const short = await openai.embeddings.create({ ...input, dimensions: 5 });
    assert.equal(byDefault.data.length, texts.length);
    byDefault.data.forEach(({ embedding, index }) => {
      assert.equal(embedding.length, 16);
      assertClose(embedding, floats.data[index].embedding);
    });
    assert.equal(short.data[2].embedding.length, 5);
    assert.equal(byDefault.model, model);
    assert.ok(byDefault.usage.prompt_tokens > 0);
    const native = await google.models.embedContent({ model, contents: texts });
    assert.equal(native.embeddings.length, texts.length);
    native.embeddings.forEach(({ values }, index) => assertClose(values, floats.data[index].embedding));
  });
}

test('tokens', setup.testOptions, async () => {
  const input = [[1, 2, 3], [4]];
  const { data, usage } = await openai.embeddings.create({ model: 'vector-chat', input });
  assert.equal(data.length, 2);
  assert.equal(usage.prompt_tokens, 4);
  await assert.rejects(openai.embeddings.create({ model: 'vector-native', input }), OpenAI.BadRequestError);
});
