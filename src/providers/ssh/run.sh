# Written by drover: the agent of this host, and how it ended. It leads a group of its own.
umask 077
cd "${0%/*}" || exit 1
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
# shellcheck disable=SC2086 # its fields
set -- ${stat##*) }
echo "$$ ${20} $boot" >agent.pid.new && mv -f agent.pid.new agent.pid
# shellcheck disable=SC1091 # written beside it
. ./environment
DROVER_AGENT_DATA_DIR=$PWD/data
DROVER_INSTALL_DIR=${PWD%/*/*/*}/agents
export DROVER_AGENT_DATA_DIR DROVER_INSTALL_DIR
if [ -s authorities.pem ]; then
  DROVER_CA_FILE=$PWD/authorities.pem
  export DROVER_CA_FILE
fi
read -r DROVER_JOIN_TOKEN <token
export DROVER_JOIN_TOKEN
# Kept alive to write down the end; a handler, unlike being deaf, is not inherited.
trap : TERM INT HUP
/bin/sh ./command
echo "$? $(date +%s)" >exit.new && mv -f exit.new exit
