/** `drover connector` as a user starts it on a login node, as a process of a test's cluster. */
import { DROVER, startProcess, tail, type TestProcess } from './processes.ts';
import { freePort } from './postgres.ts';
import type { TestServer } from './server.ts';
import { until } from './wait.ts';

export interface TestConnector {
  /** What agents dial. */
  url: string;
  process(): TestProcess;
  /** Resolves when the controller has accepted it. */
  start(server: TestServer): Promise<void>;
}

/** `env`: what the user has on the login node, the token among it. */
export async function createConnector(
  site: string,
  env: () => Record<string, string>,
): Promise<TestConnector> {
  const port = await freePort();
  let current: TestProcess | undefined;
  const connector: TestConnector = {
    url: `http://127.0.0.1:${port}`,
    process() {
      if (!current) throw new Error('the connector was never started');
      return current;
    },
    async start(server) {
      const join = ['--join', server.url, '--listen', `127.0.0.1:${port}`];
      current = startProcess([DROVER, 'connector', '--site', site, ...join], {
        // Not a folder of the server's: agents must be able to end before it does.
        cwd: '/',
        env: env(),
      });
      const started = current;
      await until('the connector is up', () => {
        if (started.end()) throw new Error(tail(started.output()));
        return started.output().includes('the connector is up');
      });
    },
  };
  return connector;
}
