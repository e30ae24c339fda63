#!/bin/sh
# toolsearch web|gateway|worker|scheduler [options]   run one node
# toolsearch check-node                               exit 0 while this container's node is well
# toolsearch COMMAND…                                 any command of manage.py
set -eu
cd /app

case "${1:-web}" in
  web | gateway)
    role=${1:-web}
    [ $# -gt 0 ] && shift
    exec python manage.py run_node "$role" --host 0.0.0.0 "$@"
    ;;
  worker | scheduler)
    exec python manage.py run_node "$@"
    ;;
  check-node)
    exec python -m toolsearch_site.cluster.check_node
    ;;
  *)
    exec python manage.py "$@"
    ;;
esac
