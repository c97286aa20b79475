/** schemathesis against the real thing: no 5xx, no status and no shape that is not described. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { SCOPES } from '../../../src/model/token.ts';
import { apiPython } from '../../support/python.ts';
import type { ApiWorld } from './world.ts';

const run = promisify(execFile);
const HERE = import.meta.dirname;
/** Cases of each operation and phase; `make fuzz-api MINUTES=…` takes as many as fit. */
const EXAMPLES = process.env['FUZZ_EXAMPLES'] ?? '12';
const SEED = process.env['FUZZ_SEED'] ?? '1';
const LIMIT_MS = 600_000;

export function fuzzSuite(worldOf: () => ApiWorld): void {
  describe('schemathesis', () => {
    test('finds nothing', { timeout: LIMIT_MS }, async () => {
      const bin = apiPython();
      if (bin === undefined) return;
      const output = await fuzz(worldOf(), bin);
      expect(output).toContain('No issues found');
    });
  });
}

async function fuzz(world: ApiWorld, bin: string): Promise<string> {
  const { server, agent, things, alpha } = world;
  // Random commands are accepted and must not run anywhere.
  await agent.stop();
  const fuzzer = await alpha.client.createToken({ user: 'fuzzer', scopes: [...SCOPES] });
  const args = ['--config-file', path.join(HERE, 'schemathesis.toml'), 'run'];
  const limits = ['--seed', SEED, '--max-examples', EXAMPLES, '--generation-database', 'none'];
  const env = {
    ...process.env,
    DROVER_TOKEN: fuzzer.secret,
    FUZZ_TOKEN_ID: fuzzer.id,
    FUZZ_JOB: things.endedJob,
    SCHEMATHESIS_HOOKS_FILE: path.join(HERE, 'hooks.py'),
  };
  try {
    const { stdout } = await run(
      path.join(bin, 'schemathesis'),
      [...args, `${server.url}/openapi.json`, ...limits],
      { cwd: server.root, env, timeout: LIMIT_MS, maxBuffer: 100_000_000 },
    );
    return stdout;
  } catch (error) {
    return (error as { stdout?: string }).stdout ?? String(error);
  }
}
