// The OpenAI Agents SDK for JavaScript: chat and responses.

import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { description, gateway, key, lookupOf, model as id, serve } from './driver.mjs'

setTracingDisabled(true)
const client = new OpenAI({ baseURL: `${gateway}/v1`, apiKey: key, maxRetries: 0 })
const kinds = { chat: OpenAIChatCompletionsModel, responses: OpenAIResponsesModel }
const model = new kinds[process.argv[2]](client, id)
const agent = (settings) => new Agent({ name: 'guide', instructions: 'Be brief.', model, ...settings })

const recipe = z.object({
  title: z.string(),
  minutes: z.number().int(),
  vegetarian: z.boolean(),
  ingredients: z.array(z.string()),
})

await serve({
  async text(prompt) {
    return { text: (await run(agent(), prompt)).finalOutput }
  },

  async stream(prompt) {
    const pieces = []
    const streamed = await run(agent(), prompt, { stream: true })
    for await (const piece of streamed.toTextStream()) pieces.push(piece)
    await streamed.completed
    return { pieces }
  },

  async tools(prompt, secret) {
    const { asked, lookup } = lookupOf(secret)
    const parameters = z.object({ city: z.string() })
    const tools = [tool({ name: 'lookup', description, parameters, execute: lookup })]
    return { text: (await run(agent({ tools }), prompt)).finalOutput, asked }
  },

  async json(prompt) {
    return { value: (await run(agent({ outputType: recipe }), prompt)).finalOutput }
  },
})
