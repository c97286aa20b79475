/** The page: what stands in it, and that nothing in the document can become markup. */
import { expect, test } from 'vitest';
import { startTestGateway } from '../testGateway.ts';
import type { OpenApi, Operation } from '../description/document.ts';
import { referencePage } from './page.ts';

const operation: Operation = {
  operationId: 'putThing',
  summary: '<script>alert(1)</script>',
  description: 'Say "hi" & `go`.\n\n- one\n- **two**',
  tags: ['things'],
  security: [{ bearer: ['jobs:manage'] }],
  parameters: [
    { name: 'id', in: 'path', required: true, example: 'a b', schema: { type: 'string' } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, default: 5 } },
  ],
  requestBody: {
    required: true,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } },
  },
  responses: { 200: { description: 'Fine' }, 404: { $ref: '#/components/responses/Problem404' } },
  'x-permission': 'jobs:manage',
};

const document: OpenApi = {
  openapi: '3.1.0',
  info: { title: 'T', version: '1', description: 'D' },
  tags: [{ name: 'things', description: 'Things.' }],
  paths: { '/v1/things/{id}': { put: operation } },
  components: {
    schemas: {
      Thing: {
        type: 'object',
        required: ['name'],
        examples: [{ name: "it's" }],
        properties: {
          name: { type: 'string', description: 'What it is called', maxLength: 9 },
          inner: { type: 'object', properties: { deep: { enum: ['a', 'b'] } } },
          list: { type: 'array', items: { anyOf: [{ type: 'null' }, { type: 'number' }] } },
        },
      },
    },
    responses: { Problem404: { description: '`NOT_FOUND`: Not found.' } },
    securitySchemes: {},
  },
};

test('shows path, permission, parameters, fields, answers and a command to type', () => {
  const page = referencePage(document);
  expect(page).toContain('/<wbr />things/<wbr />{id}');
  expect(page).toContain('<span class="badge scope">jobs:manage</span>');
  expect(page).toContain('at least 1, default 5');
  expect(page).toContain('<code>NOT_FOUND</code>: Not found.');
  expect(page).toContain('<a href="#schema-Thing">Thing</a>');
  expect(page).toContain('list of null | number');
  expect(page).toContain('<code>a</code> | <code>b</code>');
  expect(page).toContain('<li>one</li><li><strong>two</strong></li>');
  expect(page).toContain('curl -X PUT &quot;$DROVER_URL/v1/things/a%20b&quot;');
  // As a shell reads it: {"name":"it's"}.
  expect(page).toContain(String.raw`{&quot;name&quot;:&quot;it&#39;\&#39;&#39;s&quot;}`);
});

test('writes what the document says as text, never as markup', () => {
  const page = referencePage(document);
  expect(page).not.toContain('<script>alert');
  expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
});

test('is served with its files, a policy and a name for what the reader has already', async () => {
  await using gateway = await startTestGateway();
  for (const [path, type] of [
    ['/reference', 'text/html'],
    ['/reference/style.css', 'text/css'],
    ['/reference/search.js', 'text/javascript'],
    ['/openapi.json', 'application/json'],
  ] as const) {
    const answer = await gateway.call('GET', path, { token: null });
    expect([path, answer.status]).toEqual([path, 200]);
    expect(answer.headers.get('content-type')).toContain(type);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    const again = { 'if-none-match': answer.headers.get('etag') ?? '' };
    expect((await gateway.call('GET', path, { token: null, headers: again })).status).toBe(304);
  }
});
