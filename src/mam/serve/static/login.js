// The code is in the fragment, which the browser sends to no server. The script removes it from the history.
const code = decodeURIComponent(location.hash.slice(1));
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("code").value = code;
  document.getElementById("login").submit();
}
