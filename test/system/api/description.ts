/** The OpenAPI document: valid, complete, and with words for people. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiPython } from '../../support/python.ts';
import { exampleBody, operationsOf } from './operations.ts';
import type { ApiWorld } from './world.ts';

export function descriptionSuite(worldOf: () => ApiWorld): void {
  describe('the description', () => {
    test('is valid OpenAPI 3.1, as others read it', () => {
      const { document, server } = worldOf();
      expect(document.openapi).toBe('3.1.0');
      const bin = apiPython();
      if (bin === undefined) return;
      const file = path.join(server.root, 'openapi.json');
      writeFileSync(file, JSON.stringify(document));
      const output = execFileSync(path.join(bin, 'openapi-spec-validator'), [file]).toString();
      expect(output).toContain('OK');
    });

    test('has for each operation a name, a group, words, examples and every status', () => {
      const { document } = worldOf();
      const operations = operationsOf(document);
      const ids = operations.map(({ operation }) => operation.operationId);
      expect(new Set(ids).size).toBe(ids.length);
      const groups = new Set(document.tags.map(({ name }) => name));
      for (const one of operations) {
        const { name, operation, permission } = one;
        expect([name, operation.operationId]).toEqual([name, expect.stringMatching(/^[a-z]\w+$/)]);
        expect([name, groups.has(operation.tags?.[0] ?? '')]).toEqual([name, true]);
        expect([name, operation.summary]).toEqual([name, expect.any(String)]);
        for (const parameter of operation.parameters ?? []) {
          const place = `${name} ${parameter.name}`;
          expect([place, parameter.description]).toEqual([place, expect.any(String)]);
          if (!parameter.required) continue;
          expect([place, parameter.example]).toEqual([place, expect.anything()]);
        }
        exampleBody(document, one);
        const statuses = Object.keys(operation.responses);
        const wanted = permission === 'open' ? ['500', '503'] : ['401', '403', '429', '500', '503'];
        expect([name, statuses]).toEqual([name, expect.arrayContaining(wanted)]);
        expect([name, statuses.some((status) => status.startsWith('2'))]).toEqual([name, true]);
      }
    });
  });
}
