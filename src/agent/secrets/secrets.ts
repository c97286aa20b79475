/**
 * Secrets of an attempt: fetched when it starts, handed over as variables or as files that only
 * the task's user can read, and masked in its output.
 */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '../../lib/errors.ts';
import type { AttemptOrder, AttemptSecrets } from '../../protocol/agent.ts';
import type { Step } from '../around.ts';
import { Unprepared, type Preparation } from '../runtimes/around.ts';
import { MASKS_FILE, masksOf } from './masks.ts';

/** Beside the secrets, which a container sees too. */
const CA_FILE = 'drover-ca.pem';

export interface SecretStepOptions {
  /** Where jobs that may submit others call. */
  url: string;
  /** The authority they need to trust for that; empty: a public one. */
  caFile: string;
  fetchSecrets: (uid: string) => Promise<AttemptSecrets>;
}

export function secretStep({ url, caFile, fetchSecrets }: SecretStepOptions): Step {
  return {
    needsPreparation: (order) => needsSecrets(order),
    async prepare(preparation) {
      const { order, stage, home, task } = preparation;
      preparation.say('fetching its secrets');
      const { values, token } = await fetchOrRefuse(fetchSecrets, order.uid);
      if (token !== null) Object.assign(task.env, { DROVER_URL: url, DROVER_TOKEN: token });
      handOver(preparation, values);
      if (token !== null && caFile) {
        copyFileSync(caFile, join(stage, 'secrets', CA_FILE));
        task.env['DROVER_CA_FILE'] = join(home, 'secrets', CA_FILE);
      }
      const hidden = masksOf([...Object.values(values), ...(token === null ? [] : [token])]);
      writeFileSync(join(stage, MASKS_FILE), JSON.stringify(hidden), { mode: 0o600 });
      task.env['DROVER_SECRETS'] = join(home, 'secrets');
    },
  };
}

function needsSecrets({ secrets, maySubmit, environment }: AttemptOrder): boolean {
  return secrets !== undefined || maySubmit === true || !!environment?.registrySecret;
}

/** A name nobody knows fails the job; a source that is away is the cluster's fault. */
async function fetchOrRefuse(
  fetchSecrets: SecretStepOptions['fetchSecrets'],
  uid: string,
): Promise<AttemptSecrets> {
  try {
    return await fetchSecrets(uid);
  } catch (error) {
    if (error instanceof DroverError && error.code === 'NOT_FOUND') {
      throw new Unprepared(error.message, { cause: error });
    }
    const { message } = error as Error;
    throw new Unprepared(`its secrets could not be fetched: ${message}`, {
      hostFault: true,
      cause: error,
    });
  }
}

function handOver(
  { order, stage, task, secrets }: Preparation,
  values: AttemptSecrets['values'],
): void {
  const folder = join(stage, 'secrets');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const { name, as, target } of order.secrets ?? []) {
    const value = values[name];
    if (value === undefined) throw new Unprepared(`there is no secret "${name}"`);
    if (as === 'env') task.env[target || name] = value;
    else writeFileSync(join(folder, target || name), value, { mode: 0o600 });
  }
  Object.assign(secrets, values);
}
