NODE_VERSION := 24.21.0
NODE_PKG := node-$(shell uname -s | tr A-Z a-z)-$(shell uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')
SYS_OK := $(shell node -e 'const [a,b]=process.versions.node.split(".");process.exit(a>24||(a==24&&b>=15)?0:1)' 2>/dev/null && echo yes)
ifeq ($(SYS_OK),yes)
NODE_DEP :=
else
NODE_DEP := .node/bin/node
export PATH := $(CURDIR)/.node/bin:$(PATH)
endif
.node/bin/node:
	rm -rf .node/tmp && mkdir -p .node/tmp .node/bin
	npm pack --silent --prefer-offline --pack-destination .node/tmp $(NODE_PKG)@$(NODE_VERSION)
	tar -xzf .node/tmp/*.tgz -C .node/tmp package/bin/node
	mv .node/tmp/package/bin/node $@ && rm -rf .node/tmp && touch $@
