/* Every shape function that the operator table names, by the file that holds it. */
#pragma once

#include "extract/graph/operators.h"

operator_shape_fn shape_attention, shape_attention_flex, shape_attention_linear, shape_attention_rotary;
operator_shape_fn shape_block_input, shape_block_output, shape_block_upsample;
operator_shape_fn shape_const_constant, shape_const_eye_like, shape_const_of_shape, shape_const_one_hot,
    shape_const_range, shape_const_shape, shape_const_size;
operator_shape_fn shape_control_if, shape_control_loop, shape_control_scan, shape_control_sequence_map;
operator_shape_fn shape_conv, shape_conv_causal_state, shape_conv_integer, shape_conv_nhwc, shape_conv_qlinear,
    shape_conv_transpose;
operator_shape_fn shape_data_compress, shape_data_nms, shape_data_nonzero, shape_data_topk, shape_data_unique,
    shape_data_unique_ms;
operator_shape_fn shape_elementwise_binary, shape_elementwise_compare, shape_elementwise_dropout,
    shape_elementwise_test, shape_elementwise_unary, shape_elementwise_variadic, shape_elementwise_where;
operator_shape_fn shape_gather, shape_gather_elements, shape_gather_nd;
operator_shape_fn shape_image_affine_grid, shape_image_col2im, shape_image_crop_and_resize, shape_image_decoder,
    shape_image_grid_sample, shape_image_resize;
operator_shape_fn shape_loss_nll, shape_loss_softmax;
operator_shape_fn shape_matmul, shape_matmul_det, shape_matmul_einsum, shape_matmul_gemm, shape_matmul_integer,
    shape_matmul_qlinear;
operator_shape_fn shape_ml_array_feature_extractor, shape_ml_cast_map, shape_ml_category_mapper, shape_ml_classifier,
    shape_ml_dict_vectorizer, shape_ml_feature_vectorizer, shape_ml_label_encoder, shape_ml_one_hot, shape_ml_regressor,
    shape_ml_same, shape_ml_same_float, shape_ml_zip_map;
operator_shape_fn shape_move_bitcast, shape_move_cast, shape_move_cast_like, shape_move_center_crop_pad,
    shape_move_concat, shape_move_depth_to_space, shape_move_expand, shape_move_identity, shape_move_pad,
    shape_move_reverse_sequence, shape_move_slice, shape_move_space_to_depth, shape_move_split, shape_move_tile,
    shape_move_transpose, shape_move_trilu;
operator_shape_fn shape_ms_attention, shape_ms_bias_split_gelu, shape_ms_dynamic_quantize_matmul, shape_ms_embed_norm,
    shape_ms_fused_matmul, shape_ms_gather_block_quantized, shape_ms_gemm_float8, shape_ms_gemma_rotary,
    shape_ms_group_query, shape_ms_matmul_bnb4, shape_ms_matmul_integer_to_float, shape_ms_matmul_nbits,
    shape_ms_multi_head, shape_ms_packed_attention, shape_ms_packed_multi_head, shape_ms_qgemm, shape_ms_qlinear_binary,
    shape_ms_qlinear_concat, shape_ms_qlinear_global_pool, shape_ms_qlinear_where, shape_ms_skip_group_norm,
    shape_ms_skip_norm;
operator_shape_fn shape_ms_bitmask_dropout, shape_ms_cdist, shape_ms_complex_mul, shape_ms_decoder_attention,
    shape_ms_gated_relative_bias, shape_ms_is_all_finite, shape_ms_like_all, shape_ms_like_second,
    shape_ms_matmul_blocks, shape_ms_matmul_nbits_mlp, shape_ms_matmul_nbits_qkv, shape_ms_mul_integer,
    shape_ms_paged_attention, shape_ms_qordered_attention, shape_ms_qordered_matmul, shape_ms_relative_bias,
    shape_ms_remove_padding, shape_ms_restore_padding, shape_ms_retype, shape_ms_sparse_attention,
    shape_ms_time_warping, shape_ms_torch_embedding, shape_ms_unfold, shape_ms_word_conv_embedding;
operator_shape_fn shape_norm_batch, shape_norm_layer, shape_norm_rms, shape_norm_same, shape_norm_same_all;
operator_shape_fn shape_pool, shape_pool_global, shape_pool_max_roi, shape_pool_nhwc, shape_pool_roi_align,
    shape_pool_unpool;
operator_shape_fn shape_quant_dequantize, shape_quant_dynamic, shape_quant_quantize;
operator_shape_fn shape_random, shape_random_like, shape_random_multinomial;
operator_shape_fn shape_recurrent;
operator_shape_fn shape_reduce, shape_reduce_arg, shape_reduce_cumulative;
operator_shape_fn shape_scatter;
operator_shape_fn shape_sequence_at, shape_sequence_concat, shape_sequence_construct, shape_sequence_empty,
    shape_sequence_erase, shape_sequence_insert, shape_sequence_length, shape_sequence_optional,
    shape_sequence_optional_get, shape_sequence_optional_has, shape_sequence_split;
operator_shape_fn shape_signal_dft, shape_signal_irfft, shape_signal_mel, shape_signal_rfft, shape_signal_stft,
    shape_signal_window;
operator_shape_fn shape_softmax;
operator_shape_fn shape_string_concat, shape_string_normalizer, shape_string_regex, shape_string_split,
    shape_string_tfidf, shape_string_tokenizer;
operator_shape_fn shape_training_gradient, shape_training_optimizer;
operator_shape_fn shape_view_expand_dims, shape_view_flatten, shape_view_reshape, shape_view_squeeze,
    shape_view_unsqueeze;
