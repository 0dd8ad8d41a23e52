/* The functions of the table in expand.c: what an operator is made of. */
#pragma once

struct expansion;

/* The inputs of an attention. */
enum { QUERY, KEY, VALUE, QKV };

typedef void take_fn(struct expansion *x);

take_fn take_byte_concat;
take_fn take_byte_leaky_relu;
take_fn take_byte_mean;
take_fn take_byte_sigmoid;
take_fn take_byte_softmax;
take_fn take_byte_where;
take_fn take_dynamic_product;
take_fn take_embedding;
take_fn take_empty_reduction;
take_fn take_experts;
take_fn take_grouped;
take_fn take_log_loss;
take_fn take_masked_pool;
take_fn take_multi_head;
take_fn take_ordered_gelu;
take_fn take_packed_multi_head;
take_fn take_projection;
take_fn take_quantized_projection;
take_fn take_softmax_loss;
