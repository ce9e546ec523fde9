/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena doctor`: checks read files below a root and add findings. A finding is a row of a table
 * (its word, severity, sentence, what it costs, the command that mends it) and its evidence, a flat
 * JSON object with the values read; {name} in a row's texts stands for evidence of that name.
 * A check adds nothing where a file is missing that it needs: unknown is no finding.
 */
#ifndef VRB_TOOLS_DOCTOR_H
#define VRB_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/catalog.h"

#define VRB_DOC_DEVICES 64
#define VRB_DOC_ONLY	32
#define VRB_DOC_SAMPLES 128

enum vrb_severity { VRB_SEV_OK, VRB_SEV_NOTE, VRB_SEV_WARN, VRB_SEV_FAIL, VRB_N_SEVERITIES };

struct vrb_finding {
	const char *word, *group;
	enum vrb_severity severity;
	const char *sentence, *costs, *mend; /* costs and mend may be "" */
};

enum vrb_finding_id {
#define X(name, word, group, severity, sentence, costs, mend) VRB_F_##name,
#include "tools/doctor_table.h"
#undef X
	VRB_N_FINDINGS
};

extern const struct vrb_finding vrb_findings[VRB_N_FINDINGS];
/* The counters with a meaning; their words are "counter-NAME". */
extern const struct vrb_finding vrb_counter_findings[];
extern const unsigned vrb_n_counter_findings;

enum vrb_home { VRB_HOME_HOST, VRB_HOME_DOCKER, VRB_HOME_PODMAN, VRB_HOME_KUBERNETES };

/* A device of /sys/class/infiniband. */
struct vrb_doc_device {
	char name[64];
	char driver[32]; /* of its PCI function; empty for soft-RoCE and the like */
	char slot[32];	 /* 0000:3b:00.0 */
	int node;	 /* NUMA node, -1 unknown */
	bool ours;	 /* the view that `verbena run` gives */
};

struct vrb_doc {
	const char *root;   /* "" is this machine */
	const char *record; /* a folder for what is read, or NULL */
	const char *pid;    /* "self" or a number: whose limits, CPUs and environment */
	const char *device, *gid;
	const char *host; /* doctor HOST: its way is looked at, nothing else */
	char host_address[64];
	struct sockaddr_storage to;
	unsigned to_len;
	int port;
	int watch;			 /* seconds, 0 not */
	struct vrb_port_sample *samples; /* of one look of --watch */
	unsigned n_samples;
	const char *only[VRB_DOC_ONLY];
	unsigned n_only;
	json_t *findings;
	unsigned count[VRB_N_SEVERITIES];
	const struct vrb_finding *last; /* NULL: the last was not wanted */

	char release[96];
	unsigned kernel; /* major * 1000 + minor; 0 unknown */
	char distro[32]; /* ID of os-release */
	char unit[96];	 /* the systemd service of the process, or empty */
	enum vrb_home home;
	long long uid; /* -1 unknown */
	uint64_t caps;
	struct vrb_doc_device dev[VRB_DOC_DEVICES];
	unsigned n_dev;
	bool has_nic;	  /* a device that is hardware */
	bool is_software; /* --device names one of the software adapter */
};

/* Adds a finding; fmt and what follows are those of json_pack for the evidence. */
void vrb_doc_add(struct vrb_doc *d, enum vrb_finding_id id, const char *fmt, ...);
void vrb_doc_add_row(struct vrb_doc *d, const struct vrb_finding *row, json_t *evidence);
/* The evidence `name` of the finding added last is a text, too, with {name}s of the others: it is
 * filled in in English for the report, in the user's language for the screen. */
void vrb_doc_say(struct vrb_doc *d, const char *name, const char *text);
/* A name that the evidence does not have stays as it is; the tests look for that. */
json_t *vrb_doc_fill(const char *text, const json_t *evidence, vrb_translate tr);
const struct vrb_finding *vrb_doc_row(const char *word);
/* The one added last is a note only. */
void vrb_doc_lower(struct vrb_doc *d);

/* Finds the address of a peer. */
bool vrb_doc_set_host(struct vrb_doc *d, const char *host);
void vrb_check_path(struct vrb_doc *d);
void vrb_check_watch(struct vrb_doc *d);

void vrb_doc_facts(struct vrb_doc *d);
/* What --device leaves of the devices; ours are left out unless named. */
bool vrb_doc_wants(const struct vrb_doc *d, const struct vrb_doc_device *dev);

void vrb_check_software(struct vrb_doc *d);
void vrb_check_modules(struct vrb_doc *d);
void vrb_check_libraries(struct vrb_doc *d);
void vrb_check_nodes(struct vrb_doc *d);
void vrb_check_ports(struct vrb_doc *d);
void vrb_check_gids(struct vrb_doc *d);
void vrb_check_gid_for(struct vrb_doc *d);
void vrb_check_subnets(struct vrb_doc *d);
void vrb_check_netdevs(struct vrb_doc *d);
void vrb_check_qos(struct vrb_doc *d);
void vrb_check_pcie(struct vrb_doc *d);
void vrb_check_irqs(struct vrb_doc *d);
void vrb_check_cpus(struct vrb_doc *d);
void vrb_check_idle(struct vrb_doc *d);
void vrb_check_quota(struct vrb_doc *d);
void vrb_check_memlock(struct vrb_doc *d);
void vrb_check_memory(struct vrb_doc *d);
void vrb_check_process(struct vrb_doc *d);
void vrb_check_kernel(struct vrb_doc *d);
void vrb_check_udp(struct vrb_doc *d);
void vrb_check_members(struct vrb_doc *d);
void vrb_check_objects(struct vrb_doc *d);
void vrb_check_counters(struct vrb_doc *d);

void vrb_doc_print_text(const struct vrb_doc *d, bool verbose, bool quiet);
void vrb_doc_print_json(const struct vrb_doc *d);
void vrb_doc_print_list(bool json);

#endif
