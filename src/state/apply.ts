/** Applies one mutation to the state, whole or not at all. */
import { assign } from './assign.ts';
import { deleteBudget, setBudget } from './budgets.ts';
import { cancel } from './cancel.ts';
import { charge } from './charges.ts';
import { addCheckpoint } from './checkpoints.ts';
import { putData, removeData } from './dataSets.ts';
import { reseal } from './downstream.ts';
import { giveUp, lose, stop } from './endings.ts';
import { reportHealth } from './health.ts';
import type { InstanceMutation } from './instanceMutations.ts';
import { setHost } from './hosts.ts';
import { destroyInstance, drainInstance, endInstance } from './instances.ts';
import { intend, linkWorker, observeInstances } from './instances.ts';
import { DONE, type Mutation, type Result } from './mutations.ts';
import { preempt, withdraw } from './nominations.ts';
import { settleNotice } from './notices.ts';
import { setPriority } from './priority.ts';
import { observe } from './observe.ts';
import type { State } from './state.ts';
import { submit } from './submit.ts';
import { removeUser, setTenant, setUser } from './tenants.ts';
import { createToken, revokeToken, useTokens } from './tokens.ts';
import { drain, join, moveLiveWorker, revokeWorker } from './workers.ts';

export function apply(state: State, mutation: Mutation, nowMs: number): Result {
  switch (mutation.kind) {
    case 'submit':
      return submit(state, mutation, nowMs);
    case 'cancel':
      return cancel(state, mutation, nowMs);
    case 'assign':
      return assign(state, mutation, nowMs);
    case 'preempt':
      return preempt(state, mutation, nowMs);
    case 'withdraw':
      return withdraw(state, mutation, nowMs);
    case 'charge':
      return charge(state, mutation, nowMs);
    case 'set-budget':
      return setBudget(state, mutation, nowMs);
    case 'delete-budget':
      return deleteBudget(state, mutation, nowMs);
    case 'put-data':
      return putData(state, mutation, nowMs);
    case 'remove-data':
      return removeData(state, mutation, nowMs);
    case 'observe':
      return observe(state, mutation, nowMs);
    case 'add-checkpoint':
      return addCheckpoint(state, mutation, nowMs);
    case 'stop':
      return stop(state, mutation, nowMs);
    case 'lose':
      return lose(state, mutation, nowMs);
    case 'give-up':
      return giveUp(state, mutation, nowMs);
    case 'join':
      return join(state, mutation, nowMs);
    case 'move-worker':
      return moveLiveWorker(state, mutation, nowMs);
    case 'revoke-worker':
      return revokeWorker(state, mutation, nowMs);
    case 'drain':
      return drain(state, mutation, nowMs);
    case 'note': {
      const { kind: _kind, what, ...note } = mutation;
      state.note(nowMs, { kind: what, ...note });
      return DONE;
    }
    case 'reseal':
      return reseal(state, mutation);
    case 'settle-notice':
      return settleNotice(state, mutation, nowMs);
    case 'create-token':
      return createToken(state, mutation, nowMs);
    case 'revoke-token':
      return revokeToken(state, mutation, nowMs);
    case 'use-tokens':
      return useTokens(state, mutation);
    case 'set-tenant':
      return setTenant(state, mutation, nowMs);
    case 'set-user':
      return setUser(state, mutation, nowMs);
    case 'remove-user':
      return removeUser(state, mutation, nowMs);
    case 'set-priority':
      return setPriority(state, mutation, nowMs);
    default:
      return applyToMachines(state, mutation, nowMs);
  }
}

function applyToMachines(state: State, mutation: InstanceMutation, nowMs: number): Result {
  switch (mutation.kind) {
    case 'intend':
      return intend(state, mutation, nowMs);
    case 'observe-instances':
      return observeInstances(state, mutation, nowMs);
    case 'drain-instance':
      return drainInstance(state, mutation, nowMs);
    case 'destroy-instance':
      return destroyInstance(state, mutation, nowMs);
    case 'end-instance':
      return endInstance(state, mutation, nowMs);
    case 'link-worker':
      return linkWorker(state, mutation, nowMs);
    case 'report-health':
      return reportHealth(state, mutation, nowMs);
    case 'set-host':
      return setHost(state, mutation, nowMs);
  }
}
