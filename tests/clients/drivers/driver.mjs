// The line-by-line protocol between the tests and a program that drives one client library, as in driver.py.

import readline from 'node:readline'

// Libraries print too; only what is said here goes to the tests.
const say = console.log
console.log = console.info = console.error

export const { GATEWAY: gateway, GATEWAY_KEY: key, GATEWAY_MODEL: model } = process.env
export const description = 'What is known of a city'
export const parameters = {
  type: 'object',
  properties: { city: { type: 'string', description: 'which one' } },
  required: ['city'],
  additionalProperties: false,
}
// How something is cooked.
export const recipe = {
  type: 'object',
  properties: {
    title: { type: 'string' },
    minutes: { type: 'integer' },
    vegetarian: { type: 'boolean' },
    ingredients: { type: 'array', items: { type: 'string' } },
  },
  required: ['title', 'minutes', 'vegetarian', 'ingredients'],
  additionalProperties: false,
}

// The one tool: what it was asked, and the secret that it gives.
export function lookupOf(secret) {
  const asked = []
  const lookup = ({ city }) => {
    asked.push(city)
    return `${city} keeps ${secret}`
  }
  return { asked, lookup }
}

// Answers each line by the cell of its name; one that the library has no way of doing is left out.
export async function serve(cells) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { cell, prompt, secret } = JSON.parse(line)
    const answer = await (cells[cell]?.(prompt, secret) ?? Promise.resolve({ absent: true })).catch(
      (error) => ({ error: String(error) }),
    )
    say(JSON.stringify(answer))
  }
}
