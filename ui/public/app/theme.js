/* Runs before the first paint, so that the page never flashes in the other theme. A file, because the policy allows no inline script. */
(function () {
  var kept = null;
  try {
    kept = localStorage.getItem('handrail.theme');
    if (localStorage.getItem('handrail.density') === 'compact') document.documentElement.dataset.density = 'compact';
  } catch (error) {
    kept = null; /* storage is off: follow the system */
  }
  var dark = kept ? kept === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();
