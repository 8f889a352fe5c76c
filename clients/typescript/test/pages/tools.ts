import { tool } from "ai";
import { z } from "zod";

/** What the page's program takes from a user's own. */
export const tools = {
  read: tool({
    description: "Read a file",
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }: { path: string }) => `${path}: no such file`,
  }),
};
