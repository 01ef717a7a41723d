// The openai client: the chat and the responses format.

import OpenAI from 'openai';

import { cover } from './matrix.mjs';
import * as things from './things.mjs';

const classes = {
  400: OpenAI.BadRequestError,
  401: OpenAI.AuthenticationError,
  403: OpenAI.PermissionDeniedError,
  404: OpenAI.NotFoundError,
  413: OpenAI.APIError,
  429: OpenAI.RateLimitError,
};

const shared = {
  connect: (apiKey) =>
    new OpenAI({ baseURL: `${things.gateway}/v1`, apiKey, maxRetries: 0, timeout: 60_000 }),
  models: async (client, id) => {
    const listed = [];
    for await (const model of client.models.list()) listed.push(model.id);
    return { listed, got: (await client.models.retrieve(id)).id };
  },
  classOf: (status) => (status >= 500 ? OpenAI.InternalServerError : classes[status]),
  streamError: OpenAI.APIError,
  helperError: OpenAI.OpenAIError,
  kindOf: (error) => error.code,
  kinds: {
    401: 'invalid_api_key',
    403: 'permission_denied',
    404: 'model_not_found',
    413: 'request_too_large',
  },
};

const dataUrl = (picture) => `data:image/png;base64,${picture}`;

cover({
  ...shared,
  name: 'chat',
  user: (prompt, picture) => {
    const image = { type: 'image_url', image_url: { url: dataUrl(picture) } };
    const content = picture ? [{ type: 'text', text: prompt }, image] : prompt;
    return [{ role: 'user', content }];
  },
  tools: (names) => ({
    tools: names.map((name) => ({
      type: 'function',
      function: { name, parameters: things.parameters },
    })),
  }),
  thoughtful: { reasoning_effort: 'low' },
  shape: (schema) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'shape', schema, strict: true } },
  }),
  ask: (client, model, messages, more) =>
    client.chat.completions.create({ model, messages, ...more }),
  stream: (client, model, messages) =>
    client.chat.completions.create({ model, messages, stream: true }),
  gather: async (client, model, messages, more) => {
    const options = { stream_options: { include_usage: true } };
    const events = client.chat.completions.stream({ model, messages, ...options, ...more });
    // Of what the helper does not know it keeps the last piece only.
    let thought = '';
    events.on('chunk', ({ choices }) => (thought += choices[0]?.delta.reasoning_content ?? ''));
    const reply = await events.finalChatCompletion();
    if (thought) reply.choices[0].message.reasoning_content = thought;
    return reply;
  },
  delta: (event) => event.choices[0]?.delta.content,
  text: (reply) => reply.choices[0].message.content ?? '',
  endings: { end: 'stop', length: 'length', filtered: 'content_filter', refused: 'stop' },
  outcome: ({ choices: [{ finish_reason: ending, message }] }) => [
    ending,
    message.refusal ?? '',
    message.content ?? '',
  ],
  // By the chunks: the SDK's helper makes an error of every ending but the natural one.
  streamOutcome: async (client, model, messages) => {
    const outcome = [null, '', ''];
    for await (const { choices } of await client.chat.completions.create({
      model,
      messages,
      stream: true,
    })) {
      if (!choices.length) continue;
      outcome[0] = choices[0].finish_reason ?? outcome[0];
      outcome[1] += choices[0].delta.refusal ?? '';
      outcome[2] += choices[0].delta.content ?? '';
    }
    return outcome;
  },
  tally: ({ usage }) => [
    usage.prompt_tokens,
    usage.prompt_tokens_details.cached_tokens,
    usage.completion_tokens,
    usage.completion_tokens_details.reasoning_tokens,
  ],
  calls: (reply) =>
    reply.choices[0].message.tool_calls.map(({ id, function: { name, arguments: given } }) => ({
      id,
      name,
      given: JSON.parse(given),
    })),
  // Neither is part of the format, so both are extras.
  thought: ({ choices: [{ message }] }) => {
    const [detail] = message.reasoning_details ?? [];
    return {
      said: message.reasoning_content,
      seal: detail?.signature ?? detail?.data,
    };
  },
  follow: (turns, reply, results, words) => {
    const { message } = reply.choices[0];
    const answers = results.map((content, index) => ({
      role: 'tool',
      tool_call_id: message.tool_calls[index].id,
      content,
    }));
    return [...turns, message, ...answers, ...(words ? [{ role: 'user', content: words }] : [])];
  },
  headers: async (client, model) => {
    const messages = [{ role: 'user', content: 'hello' }];
    const asked = client.chat.completions.create({ model, messages });
    return (await asked.withResponse()).response.headers;
  },
});

const responsesOutcome = ({ status, incomplete_details: details, output, output_text: text }) => [
  status === 'incomplete' ? `incomplete: ${details.reason}` : status,
  output
    .at(-1)
    .content.map((part) => part.refusal ?? '')
    .join(''),
  text ?? output.flatMap((item) => item.content.map((part) => part.text ?? '')).join(''),
];

cover({
  ...shared,
  name: 'responses',
  user: (prompt, picture) => {
    const image = { type: 'input_image', image_url: dataUrl(picture), detail: 'auto' };
    const content = picture ? [{ type: 'input_text', text: prompt }, image] : prompt;
    return [{ role: 'user', content }];
  },
  tools: (names) => ({
    tools: names.map((name) => ({
      type: 'function',
      name,
      parameters: things.parameters,
      strict: true,
    })),
  }),
  thoughtful: {
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
  },
  shape: (schema) => ({
    text: { format: { type: 'json_schema', name: 'shape', schema, strict: true } },
  }),
  ask: (client, model, input, more) =>
    client.responses.create({ model, input, store: false, ...more }),
  stream: (client, model, input) =>
    client.responses.create({ model, input, store: false, stream: true }),
  gather: (client, model, input, more) =>
    client.responses.stream({ model, input, store: false, ...more }).finalResponse(),
  delta: (event) => (event.type === 'response.output_text.delta' ? event.delta : ''),
  text: (reply) => reply.output_text,
  endings: {
    end: 'completed',
    length: 'incomplete: max_output_tokens',
    filtered: 'incomplete: content_filter',
    refused: 'completed',
  },
  outcome: responsesOutcome,
  streamOutcome: async (client, model, input) => {
    let last;
    const events = await client.responses.create({ model, input, store: false, stream: true });
    for await (const event of events) last = event;
    return responsesOutcome(last.response);
  },
  tally: ({ usage }) => [
    usage.input_tokens,
    usage.input_tokens_details.cached_tokens,
    usage.output_tokens,
    usage.output_tokens_details.reasoning_tokens,
  ],
  calls: (reply) =>
    reply.output
      .filter((item) => item.type === 'function_call')
      .map((item) => ({ id: item.call_id, name: item.name, given: JSON.parse(item.arguments) })),
  thought: (reply) => {
    const items = reply.output.filter((item) => item.type === 'reasoning');
    return {
      said: items.flatMap((item) => item.summary.map((part) => part.text)).join(''),
      seal: items.map((item) => item.encrypted_content).find(Boolean),
    };
  },
  follow: (turns, reply, results, words) => {
    const calls = reply.output.filter((item) => item.type === 'function_call');
    const answers = results.map((output, index) => ({
      type: 'function_call_output',
      call_id: calls[index].call_id,
      output,
    }));
    // What the helper adds to a parsed call is not part of the format.
    const said = reply.output.map(({ parsed_arguments: _, ...item }) => item);
    return [...turns, ...said, ...answers, ...(words ? [{ role: 'user', content: words }] : [])];
  },
  countTokens: async (client, model, input) =>
    (await client.responses.inputTokens.count({ model, input })).input_tokens,
  headers: async (client, model) => {
    const asked = client.responses.create({ model, input: 'hello', store: false });
    return (await asked.withResponse()).response.headers;
  },
});
