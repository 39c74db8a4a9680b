-- pq_about: which library this is.
-- REPLY  {name, value, ...}: library (its version), layout (version of the stored layout)
command('pq_about', function()
  return { 'library', LIBRARY_VERSION, 'layout', LAYOUT_VERSION }
end, READS)
