// Tells `mam hook opencode` what happens in one session of OpenCode, in the words that the hooks of the other agents
// use. mam puts the lines `const command`, `briefs` and `verbs` before this, and names the file in the environment of
// that session alone.
import { spawn } from "node:child_process"

const QUESTION = "AskUserQuestion"
const [INTERRUPTED, DENIED] = ["interrupted", "permission_denied"]
const PATIENCE_MS = 120_000 // a longer wait for the vendor is a limit, and waiting for that is mam's business
const children = new Set() // conversations of subagents, whose ends are no ends of the session
let turn = "" // the name of the latest prompt
let open = false // whether its end is still to be told: OpenCode may say twice that it is idle
let whole = false // whether the model came to the end of its answer
let text // the last words of that
let failure = ""
let queue = Promise.resolve()

// One after the other, so that they arrive in the order in which they happened; the agent waits for none of them.
function tell(hook_event_name, fields = {}) {
  const line = JSON.stringify({ hook_event_name, turn_id: turn, ...fields })
  queue = queue.then(() => called(line)).catch(() => {})
}

function called(line) {
  return new Promise((done) => {
    const child = spawn(command[0], [...command.slice(1), "hook", "opencode"], { stdio: ["pipe", "ignore", "ignore"] })
    child.on("error", done)
    child.on("close", done)
    child.stdin.on("error", () => {})
    child.stdin.end(line)
  })
}

// A turn that somebody broke off is told by no agent's hooks: whether its job is done only a person can say.
function ended() {
  const last = { last_assistant_message: text }
  if (open && whole && !failure) tell("Stop", last)
  else if (open && failure && failure !== INTERRUPTED) tell("StopFailure", { error: failure, ...last })
  open = false
}

// What a vendor's refusal is called elsewhere.
function kind(error) {
  const status = error?.data?.statusCode
  if (error?.name === "MessageAbortedError") return INTERRUPTED
  if (error?.name === "ProviderAuthError" || status === 401 || status === 403) return "authentication_failed"
  if (status === 429) return "rate_limit"
  if (status >= 500) return "overloaded"
  return "unknown"
}

// A rule of the user's stays the rule for everything else, and where there is none, OpenCode's own does.
function allowed(rules, patterns) {
  const own = typeof rules === "string" ? { "*": rules } : { ...rules }
  for (const pattern of patterns) own[pattern] = "allow"
  return own
}

function allow(config) {
  const rights = typeof config.permission === "string" ? { "*": config.permission } : { ...config.permission }
  rights.external_directory = allowed(rights.external_directory, [`${briefs}/*`])
  if (rights.bash || rights["*"]) rights.bash = allowed(rights.bash, verbs.map((verb) => `mam ${verb} *`))
  config.permission = rights
}

const heard = {
  "session.created": ({ info }) => info?.parentID && children.add(info.id),
  "permission.asked": (asked) => tell("PermissionRequest", { tool_name: asked.permission }),
  "permission.replied": ({ reply }) => (reply === "reject" ? (failure = DENIED) : tell("PreToolUse")),
  "question.asked": () => tell("PreToolUse", { tool_name: QUESTION }),
  "question.replied": () => tell("PostToolUse", { tool_name: QUESTION }),
  "question.rejected": () => tell("PostToolUse", { tool_name: QUESTION }),
  "message.part.updated": ({ part }) => {
    if (children.has(part?.sessionID)) return
    if (part?.type === "text" && part.time?.end) text = part.text
    if (part?.type === "step-finish" && part.reason !== "tool-calls") whole = true
  },
  "session.error": ({ sessionID, error }) => {
    if (!children.has(sessionID)) failure = kind(error)
    if (failure && !text && error?.data?.message) text = error.data.message
  },
  "session.status": ({ sessionID, status }) => {
    if (status?.type !== "retry" || children.has(sessionID) || !(status.next - Date.now() > PATIENCE_MS)) return
    tell("StopFailure", { error: "rate_limit", last_assistant_message: status.message })
  },
  "session.idle": ({ sessionID }) => children.has(sessionID) || ended(),
}

export const Mam = async () => {
  tell("SessionStart", { source: "startup" })
  return {
    config: async (config) => allow(config),
    event: async ({ event }) => heard[event.type]?.(event.properties),
    "chat.message": async (_about, { message, parts }) => {
      if (children.has(message.sessionID)) return
      turn = message.id
      open = true
      whole = false
      text = undefined
      failure = ""
      const prompt = parts.map((part) => (part.type === "text" ? part.text : "")).join("\n")
      tell("UserPromptSubmit", { prompt })
    },
    "tool.execute.before": async ({ tool }) => tell("PreToolUse", { tool_name: tool }),
    "tool.execute.after": async ({ tool }) => tell("PostToolUse", { tool_name: tool }),
  }
}
