// The official Google SDK for JavaScript: native.

import { GoogleGenAI } from '@google/genai'
import { description, gateway, key, lookupOf, model, parameters, recipe, serve } from './driver.mjs'

const { models } = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: gateway } })
const user = (...parts) => ({ role: 'user', parts })

await serve({
  async text(contents) {
    return { text: (await models.generateContent({ model, contents })).text }
  },

  async stream(contents) {
    const pieces = []
    for await (const chunk of await models.generateContentStream({ model, contents })) {
      if (chunk.text) pieces.push(chunk.text)
    }
    return { pieces }
  },

  async tools(prompt, secret) {
    const { asked, lookup } = lookupOf(secret)
    const declared = { name: 'lookup', description, parametersJsonSchema: parameters }
    const config = { tools: [{ functionDeclarations: [declared] }] }
    const contents = [user({ text: prompt })]
    const reply = await models.generateContent({ model, contents, config })
    const results = reply.functionCalls.map(({ id, name, args }) => ({
      functionResponse: { id, name, response: { result: lookup(args) } },
    }))
    contents.push(reply.candidates[0].content, user(...results))
    return { text: (await models.generateContent({ model, contents, config })).text, asked }
  },

  async json(contents) {
    const config = { responseMimeType: 'application/json', responseJsonSchema: recipe }
    return { value: JSON.parse((await models.generateContent({ model, contents, config })).text) }
  },
})
