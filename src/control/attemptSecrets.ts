/** What an attempt may know and others may not: its secrets, and a token to submit jobs with. */
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { Attempt } from '../model/attempt.ts';
import type { Job } from '../model/job.ts';
import type { AttemptSecrets } from '../protocol/agent.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { SecretSource } from '../secrets/contract.ts';
import { findSecret } from '../secrets/open.ts';
import type { State } from '../state/state.ts';
import type { Agents } from './agents.ts';
import type { Committer } from './committer.ts';
import { heldAttempt, type Held } from './heldAttempt.ts';
import type { Mutate } from './mutate.ts';
import { hashSecret, newSecret } from './secrets.ts';

export interface AttemptSecretOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  random: Random;
  agents: Pick<Agents, 'workerOf'>;
  sources: readonly SecretSource[];
}

export function createAttemptSecrets(
  options: AttemptSecretOptions,
): Pick<Coordinator, 'attemptSecrets'> {
  const { state, mutate, committer, agents, random, sources } = options;

  /** It may have ended, or moved, while a source was asked. */
  const held = (workerToken: string, uid: string): Held =>
    heldAttempt(state, agents, workerToken, uid);

  /** Names are on record, values are nowhere. */
  function record({ uid, tenant, job, task, worker }: Attempt, names: readonly string[]): void {
    const data = { by: worker, names: names.join(' ') };
    mutate({ kind: 'note', what: 'secrets.given', tenant, job, task, attempt: uid, data });
  }

  function newToken({ uid }: Attempt, { tenant, owner, id }: Job): string {
    const secret = newSecret('drt', random);
    const result = mutate({
      kind: 'create-token',
      by: `attempt ${uid}`,
      attempt: uid,
      token: {
        kind: 'attempt',
        name: `job ${id}`,
        tenant,
        user: owner,
        scopes: ['jobs:read', 'jobs:manage'],
        hash: hashSecret(secret),
        pool: '',
        maxLiveWorkers: 0,
        expiresAtMs: null,
      },
    });
    if (result.kind !== 'token') throw new Error(`creating a token gave ${result.kind}`);
    return secret;
  }

  return {
    async attemptSecrets(workerToken, uid) {
      const { job } = held(workerToken, uid);
      const names = secretNames(job);
      const values: AttemptSecrets['values'] = {};
      for (const name of names) {
        const value = await findSecret(sources, job.tenant, name);
        if (value === undefined) throw unknown(name, sources.length);
        values[name] = value;
      }
      const { attempt } = held(workerToken, uid);
      if (names.length > 0) record(attempt, names);
      const token = job.spec.rules?.maySubmit ? newToken(attempt, job) : null;
      await committer.durable();
      return { values, token };
    },
  };
}

function secretNames({ spec }: Job): string[] {
  const registry = spec.environment?.registrySecret;
  const names = (spec.secrets ?? []).map(({ name }) => name);
  return [...new Set(registry ? [...names, registry] : names)];
}

function unknown(name: string, sources: number): DroverError {
  const hint =
    sources === 0
      ? 'the operator names where secrets come from in the section `secrets` of the settings'
      : 'check its name; secrets belong to one tenant each';
  return new DroverError('NOT_FOUND', `there is no secret "${name}"`, { hint });
}
