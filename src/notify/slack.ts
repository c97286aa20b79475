/** Slack's incoming webhooks, and whatever else takes their form (Mattermost, Rocket.Chat). */
import type { NoticeMessage } from '../model/noticeMessage.ts';
import type { Channel } from './contract.ts';
import { post } from './post.ts';
import type { HookOptions } from './webhook.ts';

/** Slack refuses a longer text of a section. */
const SECTION_LIMIT = 2900;

export function slackChannel({ url, allowPrivate, tenants, resolve }: HookOptions): Channel {
  return {
    tenants,
    check: async () => void (await url()),
    async send(message, signal) {
      const body = JSON.stringify(bodyOf(message));
      const headers = { 'drover-notice': message.id };
      await post({ url: await url(), body, headers, allowPrivate, signal, resolve });
    },
  };
}

function bodyOf({ id, kind, cluster, subject, lines }: NoticeMessage): object {
  const head = escape(subject);
  const section = (text: string): object => ({
    type: 'section',
    text: { type: 'mrkdwn', text: text.slice(0, SECTION_LIMIT) },
  });
  const small = { type: 'mrkdwn', text: escape(`${cluster} · ${kind} · ${id}`) };
  return {
    text: head,
    blocks: [
      section(`*${head}*`),
      ...(lines.length > 0 ? [section(lines.map(escape).join('\n'))] : []),
      { type: 'context', elements: [small] },
    ],
  };
}

/** The three characters that Slack gives a meaning: nobody's name becomes a link or a mention. */
function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
