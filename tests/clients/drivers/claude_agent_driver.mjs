// The Claude Agent SDK for JavaScript: messages. It runs the Claude Code that is inside of it.

import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk'
import { z } from 'zod'
import { description, gateway, key, lookupOf, model, recipe, serve } from './driver.mjs'

const models = ['', '_DEFAULT_OPUS', '_DEFAULT_SONNET', '_DEFAULT_HAIKU']
const env = {
  ...process.env,
  ANTHROPIC_BASE_URL: gateway,
  ANTHROPIC_API_KEY: key,
  ...Object.fromEntries(models.map((tier) => [`ANTHROPIC${tier}_MODEL`, model])),
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
}

// All that it says of one question, in order.
async function ask(prompt, more) {
  const messages = []
  const asked = query({ prompt, options: { env, tools: [], ...more } })
  for await (const message of asked) messages.push(message)
  return messages
}

await serve({
  async text(prompt) {
    return { text: (await ask(prompt)).at(-1).result }
  },

  async stream(prompt) {
    const messages = await ask(prompt, { includePartialMessages: true })
    return { pieces: messages.map(({ event }) => event?.delta?.text).filter(Boolean) }
  },

  async tools(prompt, secret) {
    const { asked, lookup } = lookupOf(secret)
    const find = tool('lookup', description, { city: z.string() }, async (given) => ({
      content: [{ type: 'text', text: lookup(given) }],
    }))
    const name = 'mcp__guide__lookup'
    const mcpServers = { guide: createSdkMcpServer({ name: 'guide', tools: [find] }) }
    const named = prompt.replace('mock:tool=lookup', `mock:tool=${name}`)
    const messages = await ask(named, { mcpServers, allowedTools: [name] })
    return { text: messages.at(-1).result, asked }
  },

  async json() {
    const outputFormat = { type: 'json_schema', schema: recipe }
    // A tool of its own takes the object.
    const messages = await ask('mock:tool=StructuredOutput', { outputFormat })
    return { value: messages.at(-1).structured_output }
  },
})
