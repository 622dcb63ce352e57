#include "egress/authority.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "egress/managed.h"

/* A positive random number of 127 bits: no two certificates of an issuer may have the same. */
static bool
set_serial(X509 *x)
{
	unsigned char bytes[16];
	BIGNUM *number = NULL;
	bool good;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
	number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
	BN_free(number);
	return good;
}

static bool
set_validity(X509 *x, long seconds)
{
	return X509_gmtime_adj(X509_getm_notBefore(x), -KR_EARLY_S) && X509_gmtime_adj(X509_getm_notAfter(x), seconds);
}

static bool
add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;
	bool good;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	good = extension && X509_add_ext(x, extension, -1);
	X509_EXTENSION_free(extension);
	return good;
}

static X509 *
make_certificate(EVP_PKEY *key)
{
	static const unsigned char name[] = "kraft session";
	X509 *x = X509_new();
	X509_NAME *subject = x ? X509_get_subject_name(x) : NULL;

	if (subject && X509_set_version(x, X509_VERSION_3) && set_serial(x) && set_validity(x, KR_AUTHORITY_DAYS * 86400L) &&
		X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC, name, -1, -1, 0) &&
		X509_set_issuer_name(x, subject) && X509_set_pubkey(x, key) &&
		add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
		add_extension(x, x, NID_subject_key_identifier, "hash") && X509_sign(x, key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

static bool
add_pem(struct kr_buf *out, BIO *pem)
{
	char *bytes = NULL;
	long n = BIO_get_mem_data(pem, &bytes);

	if (n <= 0)
		return false;
	kr_buf_add(out, bytes, (size_t)n);
	kr_buf_add(out, "", 1);
	return !out->overflow;
}

bool
kr_authority_make(struct kr_buf *out)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = key ? make_certificate(key) : NULL;
	/* The key's is wiped when it is freed. */
	BIO *public = BIO_new(BIO_s_mem()), *private = BIO_new(BIO_s_secmem());
	bool good;

	*out = KR_BUF(KR_MANAGED_AUTHORITY_BYTES);
	kr_buf_reserve(out, KR_MANAGED_AUTHORITY_BYTES);
	good = x && public && private && PEM_write_bio_X509(public, x) &&
		   PEM_write_bio_PrivateKey(private, key, NULL, NULL, 0, NULL, NULL) && add_pem(out, public) && add_pem(out, private);
	BIO_free(public);
	BIO_free(private);
	X509_free(x);
	EVP_PKEY_free(key);
	return good;
}

static BIO *
bio_of(const char *text)
{
	return BIO_new_mem_buf(text, -1);
}

bool
kr_authority_init(struct kr_authority *authority, const char *bytes)
{
	BIO *public = bio_of(bytes), *private = bio_of(bytes + strlen(bytes) + 1);

	*authority = (struct kr_authority){ .leaf_key = EVP_EC_gen("P-256") };
	if (public && private) {
		authority->certificate = PEM_read_bio_X509(public, NULL, NULL, NULL);
		authority->key = PEM_read_bio_PrivateKey(private, NULL, NULL, NULL);
	}
	BIO_free(public);
	BIO_free(private);
	if (authority->certificate && authority->key && authority->leaf_key &&
		X509_check_private_key(authority->certificate, authority->key) == 1)
		return true;
	kr_authority_fini(authority);
	return false;
}

void
kr_authority_fini(struct kr_authority *authority)
{
	X509_free(authority->certificate);
	EVP_PKEY_free(authority->key);
	EVP_PKEY_free(authority->leaf_key);
	*authority = (struct kr_authority){ NULL };
}

/* No subject: the name is in subjectAltName, and a common name is at most 64 bytes. */
X509 *
kr_authority_sign(const struct kr_authority *authority, const char *host, bool is_address)
{
	X509 *x = X509_new(), *issuer = authority->certificate;
	char name[KR_HOST_MAX + 16];

	snprintf(name, sizeof(name), "critical,%s:%s", is_address ? "IP" : "DNS", host);
	if (x && X509_set_version(x, X509_VERSION_3) && set_serial(x) && set_validity(x, KR_LEAF_HOURS * 3600L) &&
		X509_set_issuer_name(x, X509_get_subject_name(issuer)) && X509_set_pubkey(x, authority->leaf_key) &&
		add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
		add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
		add_extension(x, issuer, NID_ext_key_usage, "serverAuth") && add_extension(x, issuer, NID_subject_alt_name, name) &&
		add_extension(x, issuer, NID_subject_key_identifier, "hash") &&
		add_extension(x, issuer, NID_authority_key_identifier, "keyid:always") && X509_sign(x, authority->key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}
