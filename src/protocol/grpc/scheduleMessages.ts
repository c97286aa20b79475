/** Explanations between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type * as wire from '../gen/drover/v1/schedule_pb.ts';
import type { WhyView } from '../why.ts';
import * as w from './wire.ts';

export function whyToWire(why: WhyView): MessageInitShape<typeof wire.WhySchema> {
  return {
    ...why,
    state: w.jobState.toWire(why.state),
    position: why.position ?? undefined,
    ahead: why.ahead ?? undefined,
    quota: why.quota ?? undefined,
    predictedStartAtMs: w.toBigintOrNone(why.predictedStartAtMs),
    atMs: w.toBigint(why.atMs),
  };
}

export function whyFromWire(sent: wire.Why | undefined): WhyView {
  const message = w.need(sent, 'why');
  const { quota } = message;
  const { waiting, running } = w.need(message.tasks, 'why.tasks');
  return {
    job: message.job,
    state: w.jobState.toWord(message.state),
    code: message.code,
    sentence: message.sentence,
    workers: message.workers.map(({ reason, count, text }) => ({ reason, count, text })),
    position: message.position ?? null,
    ahead: message.ahead ?? null,
    aheadSample: message.aheadSample.map(({ job, name, rule }) => ({ job, name, rule })),
    rule: message.rule,
    quota: quota
      ? {
          tenant: quota.tenant,
          user: quota.user,
          what: quota.what,
          limit: quota.limit,
          used: quota.used,
        }
      : null,
    predictedStartAtMs: w.toNumberOrNull(message.predictedStartAtMs),
    suggestions: message.suggestions,
    tasks: { waiting, running },
    atMs: w.toNumber(message.atMs),
  };
}
