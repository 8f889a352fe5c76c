import { createTool } from "@mastra/core/tools";
import { z } from "zod";

/** What the page's program takes from a user's own. */
export const tools = {
  read: createTool({
    id: "read",
    description: "Read a file",
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }) => `${path}: no such file`,
  }),
};
