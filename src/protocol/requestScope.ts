/**
 * The id of the request under way, for whoever calls on its behalf: a gateway enters it, and the
 * client of a coordinator elsewhere sends it along, so that both logs name a request alike. It is
 * the one thing that travels beside the arguments, because every call would have to hand it on.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export const requestScope = new AsyncLocalStorage<string>();
