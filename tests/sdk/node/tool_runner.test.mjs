// The loop of the anthropic client itself: it asks for a thread first, and goes on without one where that is refused.

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

import * as things from './things.mjs';

const weather = betaTool({
  name: 'get_weather',
  description: 'Says how the weather is.',
  inputSchema: things.parameters,
  run: () => 'sunny',
});

for (const upstream of things.formats) {
  test(`tool runner to ${upstream}`, things.patience, async () => {
    const client = new Anthropic({ baseURL: things.gateway, apiKey: things.key, maxRetries: 0 });
    const reply = await client.beta.messages
      .toolRunner({
        model: `first-${upstream}`,
        max_tokens: 1024,
        tools: [weather],
        messages: [{ role: 'user', content: 'mock:tool how is the weather' }],
      })
      .runUntilDone();
    const said = reply.content.map((block) => block.text ?? '').join('');
    assert.match(said, /^The tools answered: .*sunny/s);
  });
}
