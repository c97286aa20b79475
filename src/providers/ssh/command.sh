# How an agent comes to a host: by the gateway's join.sh, or as it was sent by ssh. 97: send it.
if [ -s uploaded ]; then
  read -r sum <uploaded
  agent=$DROVER_INSTALL_DIR/agent-$sum
  "$agent" --version >/dev/null || {
    echo "drover: $agent does not run here: it needs glibc 2.28 and libstdc++," \
      "in a folder that is not mounted noexec" >&2
    exit 1
  }
  exec "$agent" agent --join "$DROVER_URL"
fi
join=$DROVER_URL/install/join.sh
if command -v curl >/dev/null 2>&1; then
  curl -fsS --connect-timeout 20 ${DROVER_CA_FILE:+--cacert "$DROVER_CA_FILE"} "$join" >join.sh
elif command -v wget >/dev/null 2>&1; then
  wget -q -O join.sh ${DROVER_CA_FILE:+--ca-certificate="$DROVER_CA_FILE"} "$join"
else
  echo 'drover: there is neither curl nor wget' >&2
  exit 97
fi || {
  echo "drover: $join cannot be fetched" >&2
  exit 97
}
exec /bin/sh ./join.sh
