// Conversations, kept in this browser's localStorage, each under a key of its own, and sent nowhere. What lies there may be of
// another version, or broken: what has not the right shape is not shown.
//
//   {id, at, title, named, system, columns: [{model, turns: [{message, note}]}]}

const PREFIX = "shoal-chat:";
const COLUMNS_MAX = 2;

const isText = (v) => typeof v === "string";
const isMessage = (m) => ["user", "assistant", "tool"].includes(m?.role) && (isText(m.content) || m.content === null) &&
  (m.tool_calls === undefined || (Array.isArray(m.tool_calls) && m.tool_calls.every((c) => isText(c?.function?.name) && isText(c.function.arguments))));
const isColumn = (c) => isText(c?.model) && Array.isArray(c.turns) && c.turns.every((t) => isMessage(t?.message));
const isChat = (c) => isText(c?.title) && Number.isFinite(c.at) && Array.isArray(c.columns) && c.columns.length > 0 && c.columns.length <= COLUMNS_MAX && c.columns.every(isColumn);

export function loadChat(id) {
  try {
    const chat = JSON.parse(localStorage.getItem(PREFIX + id));
    return isChat(chat) ? { ...chat, id } : null;
  } catch {
    return null;
  }
}

// Newest first.
export function listChats() {
  try {
    const ids = Object.keys(localStorage).filter((k) => k.startsWith(PREFIX)).map((k) => k.slice(PREFIX.length));
    return ids.map(loadChat).filter(Boolean).sort((a, b) => b.at - a.at);
  } catch {
    return [];
  }
}

// False: there is no room, or storage is shut off.
export function saveChat({ id, ...chat }) {
  try {
    localStorage.setItem(PREFIX + id, JSON.stringify(chat));
    return true;
  } catch {
    return false;
  }
}

export function removeChat(id) {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // Then it was not there.
  }
}

// Another tab has changed them.
export const onOtherTab = (f) => addEventListener("storage", (e) => (e.key === null || e.key.startsWith(PREFIX)) && f());
