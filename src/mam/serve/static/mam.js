// The page works without this. It adds: live updates, times in the viewer's zone, keys, drafts and line comments.
import "./times.js";
import "./forms.js";
import "./review.js";
import "./live.js";
import "./keys.js";
import "./push.js";

// What was done is said once: a reload does not say it again.
const place = new URL(location.href);
if (place.searchParams.has("done")) {
  for (const name of ["done", "count", "failed"]) place.searchParams.delete(name);
  history.replaceState(null, "", place);
}
