/** Webhooks: JSON, signed so that the receiver knows who sent it and when. */
import { createHmac } from 'node:crypto';
import type { NoticeMessage } from '../model/noticeMessage.ts';
import type { Channel } from './contract.ts';
import type { Resolve } from './address.ts';
import { post } from './post.ts';

export interface HookOptions {
  url: () => Promise<string>;
  allowPrivate: boolean;
  tenants: readonly string[];
  resolve?: Resolve | undefined;
}

export interface WebhookOptions extends HookOptions {
  secret: () => Promise<string>;
  now: () => number;
}

export function webhookChannel(options: WebhookOptions): Channel {
  const { url, secret, allowPrivate, resolve, tenants, now } = options;
  return {
    tenants,
    async check() {
      await url();
      await secret();
    },
    async send(message, signal) {
      const body = JSON.stringify(payloadOf(message));
      const headers = {
        'drover-notice': message.id,
        'drover-signature': signatureOf(await secret(), Math.floor(now() / 1000), body),
      };
      await post({ url: await url(), body, headers, allowPrivate, signal, resolve });
    },
  };
}

/** `t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY`, as docs/notifications.md says. */
function signatureOf(secret: string, seconds: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  return `t=${seconds},v1=${digest}`;
}

function payloadOf({ atMs, ...message }: NoticeMessage): object {
  return { ...message, at: new Date(atMs).toISOString() };
}
