// The Vercel AI SDK: all four formats, chat by two of its providers.

import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, Output, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { description, gateway, key as apiKey, lookupOf, model as id, serve } from './driver.mjs'

const openai = () => createOpenAI({ baseURL: `${gateway}/v1`, apiKey })
const models = {
  compatible: () =>
    createOpenAICompatible({
      name: 'gateway',
      baseURL: `${gateway}/v1`,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })(id),
  chat: () => openai().chat(id),
  messages: () => createAnthropic({ baseURL: `${gateway}/v1`, apiKey })(id),
  native: () => createGoogleGenerativeAI({ baseURL: `${gateway}/v1beta`, apiKey })(id),
  responses: () => openai().responses(id),
}
const model = models[process.argv[2]]()

const recipe = z.object({
  title: z.string(),
  minutes: z.number().int(),
  vegetarian: z.boolean(),
  ingredients: z.array(z.string()),
})

await serve({
  async text(prompt) {
    return { text: (await generateText({ model, prompt, maxRetries: 0 })).text }
  },

  async stream(prompt) {
    const pieces = []
    const onError = ({ error }) => pieces.push(String(error))
    const { textStream } = streamText({ model, prompt, maxRetries: 0, onError })
    for await (const piece of textStream) pieces.push(piece)
    return { pieces }
  },

  async tools(prompt, secret) {
    const { asked, lookup: execute } = lookupOf(secret)
    const lookup = tool({ description, inputSchema: z.object({ city: z.string() }), execute })
    const stopWhen = stepCountIs(3)
    const { text } = await generateText({ model, prompt, tools: { lookup }, stopWhen, maxRetries: 0 })
    return { text, asked }
  },

  async json(prompt) {
    const output = Output.object({ schema: recipe })
    return { value: (await generateText({ model, prompt, output, maxRetries: 0 })).output }
  },
})
