// The code stands in the fragment, which is sent to no server and kept out of the history.
const code = decodeURIComponent(location.hash.slice(1));
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("code").value = code;
  document.getElementById("login").submit();
}
