import { create } from "@bufbuild/protobuf";
import { type Budget, BudgetSchema } from "./gen/contextd/v1/budget_pb.js";
import { checkMembers, checkObject, wrong } from "./members.js";

/** The budget of a context, in tokens; see Budget. */
export interface BudgetInit {
  /** The model, whose window, tokenizer and margin apply if they are not set here. Absent: that of the session's budget. */
  model?: string;
  /** The model's window. Absent: that of the model. */
  maxTokens?: number;
  /** Reserved for the model's output. */
  outputReserve?: number;
  /** Reserved for injections. Absent: the sum of their own reserves. */
  injectionReserve?: number;
  /** Reserved for tool schemas, and for what else is sent beside the messages. */
  overheadTokens?: number;
  /** Fraction of the rest that is kept free, because counts are estimates. Absent: that of the model. */
  safetyMargin?: number;
  yellowAt?: number;
  redAt?: number;
  tierCaps?: Record<string, number>;
  tokenizer?: string;
}

/** The budget as a message of the API. */
export function budget(init: BudgetInit): Budget {
  checkMembers(BudgetSchema, checkObject("budget", init), "budget");
  const { maxTokens = 0, outputReserve = 0, injectionReserve = 0, overheadTokens = 0, ...rest } = init;
  return create(BudgetSchema, {
    ...rest,
    maxTokens: BigInt(maxTokens),
    outputReserve: BigInt(outputReserve),
    injectionReserve: BigInt(injectionReserve),
    overheadTokens: BigInt(overheadTokens),
  });
}

/** The budget, less the size of the tools, as `count` counts it. */
export async function withTools(
  init: BudgetInit | undefined,
  tools: readonly unknown[],
  count: (of: { model: string; tokenizer: string; toolsJson: Uint8Array<ArrayBuffer> }) => Promise<bigint>,
): Promise<Budget | undefined> {
  const toolsJson = jsonOf(tools);
  if (toolsJson.length === 0) return init === undefined ? undefined : budget(init);
  if (!init) throw new TypeError("budget must be given with tools, which are added to its overheadTokens");
  const wider = budget(init);
  const { model, tokenizer } = wider;
  wider.overheadTokens += await count({ model, tokenizer, toolsJson });
  return wider;
}

/** Tools as a request to count them has them: empty if there are none. */
export function jsonOf(tools: readonly unknown[]): Uint8Array<ArrayBuffer> {
  if (!Array.isArray(tools)) throw wrong("tools", "a list of schemas", tools);
  return new TextEncoder().encode(tools.length > 0 ? JSON.stringify(tools) : "");
}
