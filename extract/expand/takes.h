/* The functions of the table in expand.c: what an operator is made of. */
#pragma once

struct expansion;

/* The inputs of an attention. */
enum { QUERY, KEY, VALUE, QKV };

typedef void take_fn(struct expansion *x);

take_fn take_affine_grid;
take_fn take_all_finite;
take_fn take_bias_dropout;
take_fn take_bias_split_gelu;
take_fn take_binarizer;
take_fn take_branchwise_norm;
take_fn take_byte_concat;
take_fn take_byte_leaky_relu;
take_fn take_byte_mean;
take_fn take_byte_sigmoid;
take_fn take_byte_softmax;
take_fn take_byte_where;
take_fn take_causal_conv;
take_fn take_center;
take_fn take_col2im;
take_fn take_complex_product;
take_fn take_compress;
take_fn take_conv_transpose;
take_fn take_decoder_attention;
take_fn take_dft;
take_fn take_distances;
take_fn take_dynamic_product;
take_fn take_einsum;
take_fn take_embedding;
take_fn take_empty_reduction;
take_fn take_engram_gate;
take_fn take_experts;
take_fn take_eye;
take_fn take_feature_extractor;
take_fn take_gated_add;
take_fn take_gated_norm;
take_fn take_gated_position_bias;
take_fn take_gather_nd;
take_fn take_gemma_rotary;
take_fn take_grouped;
take_fn take_hardmax;
take_fn take_integer_product;
take_fn take_irfft;
take_fn take_linear_gate;
take_fn take_log_loss;
take_fn take_masked_pool;
take_fn take_max_unpool;
take_fn take_multi_head;
take_fn take_ordered_gelu;
take_fn take_ordered_product;
take_fn take_packed_gate;
take_fn take_packed_multi_head;
take_fn take_packed_projections;
take_fn take_position_bias;
take_fn take_product;
take_fn take_projection;
take_fn take_quantized_projection;
take_fn take_reorder;
take_fn take_restore_padding;
take_fn take_reverse_sequence;
take_fn take_rfft;
take_fn take_sample;
take_fn take_scaled_silu;
take_fn take_scores;
take_fn take_softmax_loss;
take_fn take_stft;
take_fn take_streams_rotary;
take_fn take_tensor_scatter;
take_fn take_torch_embedding;
take_fn take_training_step;
take_fn take_unfold;
