#!/bin/bash
# Gets a real Apptainer for its test: tools/get-apptainer.sh FOLDER. Stable Debian has none, so the
# package is that of unstable, with the C library it was made for beside it, in FOLDER alone: the
# system's own stays as it is. Each package is checked against the list of Debian's archive.
set -euo pipefail
folder=$(realpath -m "$1")
# Where this machine gets its own packages from.
# shellcheck disable=SC2016 # It is apt that fills this in.
sources=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages')
archive=$(grep -v security <<<"$sources" | head -n 1)
archive=${archive%/}
[ -x "$folder/usr/bin/apptainer" ] && exit 0
command -v patchelf >/dev/null || { echo "patchelf is missing: make system-packages" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder/packages"
cd "$folder/packages"
architecture=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")
curl -fsS "$archive/dists/sid/main/binary-$architecture/Packages.xz" | xz -dc >list
for package in apptainer libc6 libseccomp2 libsqlite3-0; do
  read -r file sum < <(awk -v RS= -v wanted="$package" '
    $1 == "Package:" && $2 == wanted {
      for (i = 3; i < NF; i++) {
        if ($i == "Filename:") file = $(i + 1)
        if ($i == "SHA256:") sum = $(i + 1)
      }
      print file, sum
    }' list)
  curl -fsS -o "$package.deb" "$archive/$file"
  echo "$sum  $package.deb" | sha256sum --check --quiet
done
dpkg -x apptainer.deb "$folder"
for package in libc6 libseccomp2 libsqlite3-0; do dpkg -x "$package.deb" "$folder/libraries"; done

libraries=$folder/libraries/usr/lib/$triplet
loader=$(basename "$(patchelf --print-interpreter "$folder/usr/bin/apptainer")")
for program in "$folder/usr/bin/apptainer" "$folder/usr/lib/$triplet/apptainer/bin/starter"; do
  # The old kind of search path, which holds for the libraries of libraries as well.
  patchelf --set-interpreter "$libraries/$loader" --force-rpath --set-rpath "$libraries" "$program"
done
# Moved, it looks for its settings and sessions beside itself; its starter, one folder further down.
mv "$folder/etc" "$folder/usr/etc"
ln -s ../etc "$folder/usr/lib/etc"
for place in usr/var usr/lib/var; do mkdir -p "$folder/$place/lib/apptainer/mnt/session"; done
# Root in a container is not allowed everything either.
sed -i 's/^root default capabilities = full/root default capabilities = no/' \
  "$folder/usr/etc/apptainer/apptainer.conf"
rm -rf "$folder/packages"
