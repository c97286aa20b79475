/** Token exchange for this process, from its settings and the files these name. */
import { readFileSync } from 'node:fs';
import { openExchange } from '../exchange/open.ts';
import { systemClock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import type { ExchangeSettings } from '../model/exchangeSettings.ts';

export function exchangeOf(settings: ExchangeSettings, log: Log): ReturnType<typeof openExchange> {
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  return openExchange(settings, { readFile, clock: systemClock, random: systemRandom, log });
}
