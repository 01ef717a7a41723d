// Tests the genai client with the native format.

import { ApiError, GoogleGenAI } from '@google/genai';

import { testClient } from './matrix.mjs';
import * as setup from './setup.mjs';

const send = (client, model, contents, config) =>
  client.models.generateContent({ model, contents, config });
const stream = (client, model, contents, config) =>
  client.models.generateContentStream({ model, contents, config });
const partsOf = (response) => response.candidates?.[0]?.content?.parts ?? [];
const text = (response) =>
  partsOf(response)
    .map((part) => (part.thought ? '' : (part.text ?? '')))
    .join('');
// The format has no field for a refusal.
const outcome = (response) => [response.candidates[0].finishReason, '', text(response)];

// Returns the whole response of a stream; the SDK has no helper for it.
async function collectStream(...request) {
  const parts = [];
  let last;
  for await (const chunk of await stream(...request)) {
    parts.push(...partsOf(chunk));
    last = chunk;
  }
  const { finishReason } = last.candidates[0];
  const { usageMetadata } = last;
  return { usageMetadata, candidates: [{ finishReason, content: { role: 'model', parts } }] };
}

testClient({
  name: 'native',
  connect: (apiKey) =>
    new GoogleGenAI({ apiKey, httpOptions: { baseUrl: setup.gateway, timeout: 60_000 } }),
  models: async (client, id) => {
    const plain = (model) => model.name.replace(/^models\//, '');
    const listed = [];
    for await (const model of await client.models.list()) listed.push(plain(model));
    return { listed, got: plain(await client.models.get({ model: id })) };
  },
  errorClass: () => ApiError,
  streamError: ApiError,
  helperError: ApiError,
  errorType: (error) => JSON.parse(error.message).error.status,
  errorTypes: {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    413: 'INVALID_ARGUMENT',
  },
  user: (prompt, image) => {
    const parts = [{ text: prompt }];
    if (image) parts.push({ inlineData: { mimeType: 'image/png', data: image } });
    return [{ role: 'user', parts }];
  },
  tools: (names) => {
    const functionDeclarations = names.map((name) => ({
      name,
      parametersJsonSchema: setup.parameters,
    }));
    return { tools: [{ functionDeclarations }] };
  },
  reasoningOptions: { thinkingConfig: { includeThoughts: true } },
  structuredOutput: (schema) => ({ responseMimeType: 'application/json', responseJsonSchema: schema }),
  send,
  stream,
  collectStream,
  delta: text,
  text,
  finishReasons: { end: 'STOP', length: 'MAX_TOKENS', filtered: 'SAFETY', refused: 'STOP' },
  outcome,
  streamOutcome: async (...request) => outcome(await collectStream(...request)),
  usageDetails: ({ usageMetadata: usage }) => [
    usage.promptTokenCount,
    usage.cachedContentTokenCount,
    usage.candidatesTokenCount + usage.thoughtsTokenCount,
    usage.thoughtsTokenCount,
  ],
  toolCalls: (response) =>
    partsOf(response)
      .filter((part) => part.functionCall)
      .map(({ functionCall: { id, name, args } }) => ({ id, name, args: args })),
  reasoning: (response) => ({
    text: partsOf(response)
      .map((part) => (part.thought ? (part.text ?? '') : ''))
      .join(''),
    signature: partsOf(response)
      .map((part) => part.thoughtSignature)
      .find(Boolean),
  }),
  appendToolResults: (turns, response, results, prompt) => {
    const calls = partsOf(response).filter((part) => part.functionCall);
    const parts = results.map((result, index) => {
      const { id, name } = calls[index].functionCall;
      return { functionResponse: { id, name, response: { result } } };
    });
    const next = [...turns, response.candidates[0].content, { role: 'user', parts }];
    return prompt ? [...next, { role: 'user', parts: [{ text: prompt }] }] : next;
  },
  countTokens: async (client, model, contents) =>
    (await client.models.countTokens({ model, contents })).totalTokens,
  headers: async (client, model) =>
    new Headers((await send(client, model, 'hello')).sdkHttpResponse.headers),
});
