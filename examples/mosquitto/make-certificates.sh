#!/bin/sh
# A certificate authority of your own and a certificate for the broker: make-certificates.sh HOSTNAME...
set -eu
umask 077
names=""
for name in "${@:-localhost}"; do
  case "$name" in
    *[!0-9.]*) names="$names,DNS:$name" ;;
    *) names="$names,IP:$name" ;;
  esac
done
mkdir -p certificates
cd certificates
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=mam events CA" \
  -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" \
  -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=${1:-localhost}" \
  -keyout broker.key -out broker.csr
printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n' "${names#,}" > broker.ext
openssl x509 -req -in broker.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile broker.ext -out broker.crt
rm broker.csr broker.ext
chmod 644 ca.crt broker.crt
chmod 711 .  # a broker that gives up being root must get to its own key; the authority's stays yours
