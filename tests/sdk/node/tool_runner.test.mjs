// Tests the tool loop of the anthropic client: it asks for a thread first, and continues without one if that is refused.

import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

import * as setup from './setup.mjs';

const weather = betaTool({
  name: 'get_weather',
  description: 'Says how the weather is.',
  inputSchema: setup.parameters,
  run: () => 'sunny',
});

for (const upstream of setup.formats) {
  test(`tool runner to ${upstream}`, setup.testOptions, async () => {
    const client = new Anthropic({ baseURL: setup.gateway, apiKey: setup.key, maxRetries: 0 });
    const response = await client.beta.messages
      .toolRunner({
        model: `first-${upstream}`,
        max_tokens: 1024,
        tools: [weather],
        messages: [{ role: 'user', content: 'mock:tool how is the weather' }],
      })
      .runUntilDone();
    const text = response.content.map((block) => block.text ?? '').join('');
    assert.match(text, /^The tools answered: .*sunny/s);
  });
}
