// The genai client: the native format.

import { ApiError, GoogleGenAI } from '@google/genai';

import { cover } from './matrix.mjs';
import * as things from './things.mjs';

const ask = (client, model, contents, config) =>
  client.models.generateContent({ model, contents, config });
const stream = (client, model, contents, config) =>
  client.models.generateContentStream({ model, contents, config });
const partsOf = (reply) => reply.candidates?.[0]?.content?.parts ?? [];
const text = (reply) =>
  partsOf(reply)
    .map((part) => (part.thought ? '' : (part.text ?? '')))
    .join('');
// The format has no place of its own for the words of a refusal.
const outcome = (reply) => [reply.candidates[0].finishReason, '', text(reply)];

// A stream, put together: the SDK has no helper for it.
async function gather(...asked) {
  const parts = [];
  let last;
  for await (const chunk of await stream(...asked)) {
    parts.push(...partsOf(chunk));
    last = chunk;
  }
  const { finishReason } = last.candidates[0];
  const { usageMetadata } = last;
  return { usageMetadata, candidates: [{ finishReason, content: { role: 'model', parts } }] };
}

cover({
  name: 'native',
  connect: (apiKey) =>
    new GoogleGenAI({ apiKey, httpOptions: { baseUrl: things.gateway, timeout: 60_000 } }),
  models: async (client, id) => {
    const plain = (model) => model.name.replace(/^models\//, '');
    const listed = [];
    for await (const model of await client.models.list()) listed.push(plain(model));
    return { listed, got: plain(await client.models.get({ model: id })) };
  },
  classOf: () => ApiError,
  streamError: ApiError,
  helperError: ApiError,
  kindOf: (error) => JSON.parse(error.message).error.status,
  kinds: {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    413: 'INVALID_ARGUMENT',
  },
  user: (prompt, picture) => {
    const parts = [{ text: prompt }];
    if (picture) parts.push({ inlineData: { mimeType: 'image/png', data: picture } });
    return [{ role: 'user', parts }];
  },
  tools: (names) => {
    const functionDeclarations = names.map((name) => ({
      name,
      parametersJsonSchema: things.parameters,
    }));
    return { tools: [{ functionDeclarations }] };
  },
  thoughtful: { thinkingConfig: { includeThoughts: true } },
  shape: (schema) => ({ responseMimeType: 'application/json', responseJsonSchema: schema }),
  ask,
  stream,
  gather,
  delta: text,
  text,
  endings: { end: 'STOP', length: 'MAX_TOKENS', filtered: 'SAFETY', refused: 'STOP' },
  outcome,
  streamOutcome: async (...asked) => outcome(await gather(...asked)),
  tally: ({ usageMetadata: usage }) => [
    usage.promptTokenCount,
    usage.cachedContentTokenCount,
    usage.candidatesTokenCount + usage.thoughtsTokenCount,
    usage.thoughtsTokenCount,
  ],
  calls: (reply) =>
    partsOf(reply)
      .filter((part) => part.functionCall)
      .map(({ functionCall: { id, name, args } }) => ({ id, name, given: args })),
  thought: (reply) => ({
    said: partsOf(reply)
      .map((part) => (part.thought ? (part.text ?? '') : ''))
      .join(''),
    seal: partsOf(reply)
      .map((part) => part.thoughtSignature)
      .find(Boolean),
  }),
  follow: (turns, reply, results, words) => {
    const calls = partsOf(reply).filter((part) => part.functionCall);
    const parts = results.map((result, index) => {
      const { id, name } = calls[index].functionCall;
      return { functionResponse: { id, name, response: { result } } };
    });
    const said = [...turns, reply.candidates[0].content, { role: 'user', parts }];
    return words ? [...said, { role: 'user', parts: [{ text: words }] }] : said;
  },
  countTokens: async (client, model, contents) =>
    (await client.models.countTokens({ model, contents })).totalTokens,
  headers: async (client, model) =>
    new Headers((await ask(client, model, 'hello')).sdkHttpResponse.headers),
});
