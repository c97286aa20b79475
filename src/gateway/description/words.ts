/** The words around the routes: what the API is, and its groups in the order of a day's work. */

export const API_WORDS = {
  title: 'Drover',
  description: `One control plane for every GPU you can reach.

- **Permissions.** Every operation names the one it needs as \`x-permission\`: the scope a token
  must have, \`open\` (anybody) or \`loopback\` (a process on the gateway's machine).
- **Tenants.** A token belongs to a tenant. What is another tenant's is not there: 404.
- **Answers** are \`{ "data": …, "meta": … }\`; failures are \`application/problem+json\` with a
  \`code\` for programs, a \`detail\` and a \`hint\` for people, and a \`requestId\` for the logs.
- **Lists** come in pages: pass \`meta.nextCursor\` as \`cursor\` until it is null.
- **Repeats.** A submission with an \`Idempotency-Key\` may be sent again: it makes its jobs once.
- **Times** are milliseconds since 1970 in UTC and end in \`Ms\`; money is in millionths and ends in
  \`Micros\`.`,
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  bearer: 'A token of `drover tokens`. Each operation names the scope it needs.',
};

export const TAGS = [
  { name: 'jobs', description: 'Submit jobs, look at them, wait for them, cancel them.' },
  {
    name: 'training',
    description: 'Trainings as blocks, and their evaluations, made by templates.',
  },
  { name: 'queue', description: 'What waits, and why.' },
  { name: 'blobs', description: 'Bytes by their hash: code, inputs, results, checkpoints.' },
  { name: 'data', description: 'Names for bytes that jobs use, and the removal of the rest.' },
  { name: 'proxy', description: 'Pages that a running task serves, in a browser.' },
  { name: 'budgets', description: 'What may be used, what was used, and what it cost.' },
  { name: 'tokens', description: 'Who may call, and for what.' },
  { name: 'tenants', description: 'Tenants and their users: who may come in, and who leaves.' },
  { name: 'audit', description: 'Who looked into what and changed what.' },
  { name: 'policy', description: "The site's rules and defaults." },
  { name: 'workers', description: 'The machines of the fleet.' },
  { name: 'install', description: 'How a bare machine becomes a worker.' },
  { name: 'pools', description: 'Where machines come from, which came, and their hosts.' },
  { name: 'cluster', description: 'This installation.' },
  { name: 'health', description: 'Whether it lives, works, and in numbers.' },
  { name: 'description', description: 'This API, for programs and for people.' },
] as const;
