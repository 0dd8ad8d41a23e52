/* What families of models are: a row of a table each. A family is told by the `model_type` of its configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a config.json says; a family's defaults are those of its configuration class, which files leave out. 0 and NULL:
 * not there. */
typedef struct config_values {
    int64_t vocab, hidden, layers, heads, kv_heads, head, inner, positions, types;
    int64_t experts, top_k;
    int64_t window, window_from; /* most keys that a query sees, from this layer on */
    int64_t image, patch, channels, labels;
    double rotated; /* the part of a head that is rotated */
    bool tied;      /* the product with the vocabulary takes the embedding's table */
    const char *activation;
} config_values;

/* Which products have a bias. */
enum { CONFIG_BIAS_QKV = 1, CONFIG_BIAS_OUT = 2, CONFIG_BIAS_MLP = 4 };

typedef struct config_flag {
    const char *name;
    unsigned bias;
} config_flag;

typedef enum config_embedding {
    CONFIG_TOKENS,    /* a row of a table for each token; positions turn queries and keys */
    CONFIG_POSITIONS, /* and one for its position */
    CONFIG_SEGMENTS,  /* and one for its segment, then a norm */
    CONFIG_PATCHES    /* a convolution over an image, behind a token of its own */
} config_embedding;

typedef enum config_linear {
    CONFIG_MATMUL, /* a product, and the bias added */
    CONFIG_GEMM    /* GPT-2's: all tokens in one matrix */
} config_linear;

/* Queries, keys and values: of a product each, or of one that is taken apart. */
typedef enum config_qkv { CONFIG_APART, CONFIG_SPLIT, CONFIG_SLICED } config_qkv;

typedef enum config_mlp {
    CONFIG_PLAIN,       /* up, activation, down */
    CONFIG_GATED,       /* the activation of one product gates another */
    CONFIG_GATED_FUSED, /* both are halves of one product */
    CONFIG_EXPERTS      /* gated, and a router chooses */
} config_mlp;

typedef enum config_step_kind {
    CONFIG_END,
    CONFIG_FIRST,  /* the first token alone */
    CONFIG_DENSE,  /* a product of matrices with a bias */
    CONFIG_LINEAR, /* of all tokens, with a bias */
    CONFIG_BIASLESS,
    CONFIG_ACTIVATE, /* as the configuration says */
    CONFIG_TANH,
    CONFIG_NORM
} config_step_kind;

/* What stands behind the last layer, by the end of the architecture's name. */
enum { CONFIG_MAX_STEPS = 6 };
typedef struct config_head {
    const char *suffix;
    struct {
        config_step_kind kind;
        const char *name;
        enum { CONFIG_TO_HIDDEN, CONFIG_TO_VOCAB, CONFIG_TO_LABELS } to;
    } steps[CONFIG_MAX_STEPS];
} config_head;

/* Names of modules, as in transformers' state of the model; those of a layer stand behind the layer's. */
typedef struct config_names {
    const char *tokens, *positions, *segments, *embedding_norm, *first; /* first: the token before patches */
    const char *layer, *norm_1, *query, *key, *value, *fused, *out, *norm_2, *gate, *up, *down, *router, *last_norm;
} config_names;

typedef struct config_family {
    const char *model_type, *prefix; /* of the names of its architectures, which end as its heads say */
    config_values defaults;
    const config_flag *flags; /* end with a NULL name */
    unsigned bias;            /* without any flag */
    const char *norm;         /* the operator */
    bool norm_behind;         /* behind each sum, else before each part */
    bool scaled;              /* the embedding is multiplied by a number */
    bool causal;
    bool window_asked; /* a window counts only where `use_sliding_window` is true */
    config_embedding embedding;
    config_linear linear;
    config_qkv qkv;
    config_mlp mlp;
    const config_head *heads; /* end with a NULL suffix; the first one where the file names none */
    const config_names *names;
} config_family;

/* How an activation is written in ONNX. */
typedef struct config_activation {
    const char *name;
    const char *op_type;
    const char *approximate; /* of Gelu; NULL: none */
    bool gates;              /* the operator's result times its input: silu is x sigmoid(x) */
} config_activation;

/* NULL: not known. */
const config_family *config_family_find(const char *model_type);
const config_activation *config_activation_find(const char *name);
/* "bert, gemma, …" */
const char *config_family_names(char *text, size_t size);
const char *config_activation_names(char *text, size_t size);
