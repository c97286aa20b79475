/** The channels an operator has configured. Secrets are read when they are used. */
import { readFile } from 'node:fs/promises';
import { DroverError } from '../lib/errors.ts';
import type { ChannelSettings, NotifySettings } from '../model/notifySettings.ts';
import type { Resolve } from './address.ts';
import type { Channel } from './contract.ts';
import { emailChannel } from './email.ts';
import { slackChannel } from './slack.ts';
import { webhookChannel } from './webhook.ts';

export interface ChannelSources {
  env: Readonly<Record<string, string | undefined>>;
  now: () => number;
  resolve?: Resolve | undefined;
}

export function openChannels(
  { channels }: NotifySettings,
  sources: ChannelSources,
): Map<string, Channel> {
  return new Map(Object.entries(channels).map(([name, one]) => [name, open(one, sources)]));
}

function open(one: ChannelSettings, { env, now, resolve }: ChannelSources): Channel {
  const secret = (file: string, variable: string) => () => read(file, variable, env);
  const { allowPrivate, tenants } = one;
  const shared = { allowPrivate, tenants, resolve };
  if (one.kind === 'email') {
    const { host, port, tls, user, from, to } = one;
    const password = secret(one.passwordFile, one.passwordVariable);
    const ca = one.caFile ? secret(one.caFile, '') : async () => '';
    return emailChannel({ ...shared, host, port, tls, user, from, to, password, ca });
  }
  const named = one.kind === 'webhook' ? one.url : '';
  const url = named ? async () => named : secret(one.urlFile, one.urlVariable);
  if (one.kind === 'slack') return slackChannel({ ...shared, url });
  return webhookChannel({
    ...shared,
    url,
    now,
    secret: secret(one.secretFile, one.secretVariable),
  });
}

async function read(file: string, variable: string, env: ChannelSources['env']): Promise<string> {
  const text = file ? await readFile(file, 'utf8').catch(unreadable(file)) : env[variable];
  if (text?.trim()) return text.trim();
  const where = file ? `the file ${file}` : `the variable ${variable}`;
  throw new DroverError('INVALID_ARGUMENT', `${where} is empty or not set`);
}

const unreadable =
  (file: string) =>
  (cause: unknown): never => {
    throw new DroverError('INVALID_ARGUMENT', `the file ${file} cannot be read`, { cause });
  };
