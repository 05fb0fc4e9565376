// The page works without this. It adds: live updates, times in the viewer's zone, keys, drafts and line comments.
import "./times.js";
import "./forms.js";
import "./review.js";
import "./live.js";
import "./keys.js";
