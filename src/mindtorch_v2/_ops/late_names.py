"""What the families of ops that are loaded late have. Written by `make docs`; do not edit."""

NAMES = {
    "amp": (
        "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ "
    ),
    "attention": (
        "_fused_sdp_choice _safe_softmax _scaled_dot_product_attention_math "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward "
        "scaled_dot_product_attention "
    ),
    "compiled_forms": (
        "_batch_norm_with_update _chunk_cat _unsafe_masked_index _unsafe_masked_index_put_accumulate "
    ),
    "conv_tbc": (
        "conv_tbc conv_tbc_backward "
    ),
    "convolution": (
        "_convolution _convolution_double_backward _convolution_mode conv1d conv2d conv3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d convolution convolution_backward mkldnn_convolution slow_conv3d "
        "slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d "
    ),
    "ctc": (
        "_ctc_loss _ctc_loss_backward ctc_loss "
    ),
    "differences": (
        "gradient "
    ),
    "distance": (
        "_cdist_backward _cdist_forward _euclidean_dist _pdist_backward _pdist_forward _trilinear bilinear "
        "cdist cosine_similarity cross linalg_cross pairwise_distance pdist "
    ),
    "einsum": (
        "einsum inner kron tensordot "
    ),
    "embedding_bag": (
        "_embedding_bag _embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_forward_only "
        "_embedding_bag_per_sample_weights_backward _embedding_bag_sparse_backward embedding_bag "
    ),
    "encoder_layer": (
        "_addmm_activation _masked_softmax _native_multi_head_attention _nested_tensor_from_mask_left_aligned "
        "_transform_bias_rescale_qkv _transformer_encoder_layer_fwd "
    ),
    "fake_quantize": (
        "batch_norm_update_stats fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask "
        "fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask "
    ),
    "fft": (
        "_fft_c2c _fft_c2r _fft_r2c fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 "
        "fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft "
        "fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn "
    ),
    "foreach": (
        "_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv "
        "_foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan "
        "_foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ "
        "_foreach_clamp_min _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_ "
        "_foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc "
        "_foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor "
        "_foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma "
        "_foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ "
        "_foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_ "
        "_foreach_minimum _foreach_minimum_ _foreach_mm _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ "
        "_foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round "
        "_foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign "
        "_foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ "
        "_foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc "
        "_foreach_trunc_ _foreach_zero_ "
    ),
    "fractional_pooling": (
        "fractional_max_pool2d fractional_max_pool2d_backward fractional_max_pool3d "
        "fractional_max_pool3d_backward "
    ),
    "fused_optimizer": (
        "_fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_sgd_ "
    ),
    "gather": (
        "argwhere diag diag_embed diagflat diagonal_copy gather gather_backward index_add index_copy "
        "index_fill index_fill_ index_reduce index_select index_select_backward masked_fill masked_fill_ "
        "masked_scatter masked_scatter_backward masked_select masked_select_backward nonzero nonzero_numpy "
        "put scatter scatter_ scatter_add scatter_reduce take take_along_dim trace trace_backward tril "
        "tril_indices triu triu_indices "
    ),
    "grid": (
        "_grid_sampler_2d_cpu_fallback affine_grid_generator affine_grid_generator_backward grid_sampler "
        "grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward "
    ),
    "grouped": (
        "_grouped_mm "
    ),
    "linalg": (
        "_linalg_det _linalg_slogdet _linalg_solve_ex cholesky det inverse linalg_cholesky linalg_cholesky_ex "
        "linalg_det linalg_inv linalg_inv_ex linalg_qr linalg_slogdet linalg_solve logdet qr slogdet "
    ),
    "linalg_functions": (
        "linalg_cond linalg_diagonal linalg_eig linalg_eigvals linalg_matrix_exp linalg_tensorinv "
        "linalg_tensorsolve linalg_vander linalg_vecdot matrix_exp pca_lowrank svd_lowrank vander "
    ),
    "linalg_ldl": (
        "linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve "
    ),
    "linalg_lu": (
        "_cholesky_solve_helper _lu_with_info cholesky_inverse cholesky_solve linalg_lu linalg_lu_factor "
        "linalg_lu_factor_ex linalg_lu_solve linalg_solve_ex linalg_solve_triangular lu lu_solve lu_unpack "
        "triangular_solve "
    ),
    "linalg_reflections": (
        "geqrf linalg_householder_product orgqr ormqr "
    ),
    "linalg_spectral": (
        "_linalg_eigh _linalg_svd linalg_eigh linalg_eigvalsh linalg_lstsq linalg_matrix_norm "
        "linalg_matrix_rank linalg_norm linalg_pinv linalg_svd linalg_svdvals pinverse svd "
    ),
    "margin": (
        "multi_margin_loss multi_margin_loss_backward multilabel_margin_loss multilabel_margin_loss_backward "
        "multilabel_margin_loss_forward "
    ),
    "numeric": (
        "_segment_reduce_backward corrcoef cov empty_permuted fill fill_diagonal_ float_power_ frexp "
        "frobenius_norm hash_tensor histogramdd is_same_size is_set_to nonzero_static nuclear_norm range "
        "renorm resize_as_ segment_reduce sum_to_size "
    ),
    "packed_weights": (
        "_convert_weight_to_int4pack_for_cpu _weight_int4pack_mm_for_cpu _weight_int8pack_mm "
    ),
    "padding": (
        "_pad_circular constant_pad_nd pad reflection_pad1d reflection_pad1d_backward reflection_pad2d "
        "reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward replication_pad1d "
        "replication_pad1d_backward replication_pad2d replication_pad2d_backward replication_pad3d "
        "replication_pad3d_backward "
    ),
    "pooling": (
        "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d "
        "_adaptive_avg_pool3d_backward adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool2d_backward adaptive_max_pool3d "
        "adaptive_max_pool3d_backward avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d "
        "avg_pool3d_backward max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices "
        "max_pool2d_with_indices_backward max_pool3d max_pool3d_with_indices max_pool3d_with_indices_backward "
        "max_unpool2d max_unpool3d "
    ),
    "random_slopes": (
        "rrelu rrelu_ rrelu_with_noise rrelu_with_noise_backward "
    ),
    "rearrange": (
        "channel_shuffle col2im im2col native_channel_shuffle pixel_shuffle pixel_unshuffle "
    ),
    "recurrent": (
        "gru gru_cell lstm lstm_cell mkldnn_rnn_layer mkldnn_rnn_layer_backward rnn_relu rnn_relu_cell "
        "rnn_tanh rnn_tanh_cell unsafe_chunk unsafe_split "
    ),
    "resize": (
        "_upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest_exact2d "
        "_upsample_nearest_exact2d_backward _upsample_nearest_exact3d _upsample_nearest_exact3d_backward "
        "upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_backward "
        "upsample_linear1d upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward "
        "upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward "
        "upsample_trilinear3d upsample_trilinear3d_backward "
    ),
    "resize_smooth": (
        "_upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa "
        "_upsample_bilinear2d_aa_backward _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward "
    ),
    "sampling": (
        "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial poisson "
    ),
    "scan": (
        "cummax cummaxmin_backward cummin cumprod cumprod_backward cumsum cumulative_trapezoid diff "
        "logcumsumexp trapezoid trapz "
    ),
    "search": (
        "_unique2 bincount bucketize histc histogram isin searchsorted unique unique_consecutive unique_dim "
    ),
    "sparse": (
        "_coalesce _coalesced_ _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _indices "
        "_nnz _sparse_compressed_tensor_from_parts _sparse_coo_tensor_with_dims_and_tensors _sparse_mm "
        "_to_dense _to_sparse _to_sparse_csc _to_sparse_csr _values ccol_indices coalesce col_indices "
        "crow_indices dsmm indices is_coalesced row_indices sparse_compressed_tensor sparse_coo_tensor "
        "sparse_csc_tensor sparse_csr_tensor sparse_mask spmm to_dense to_sparse to_sparse_coo to_sparse_csc "
        "to_sparse_csr values "
    ),
    "special": (
        "igamma igammac mvlgamma polygamma_ special_airy_ai special_bessel_j0 special_bessel_j1 "
        "special_bessel_y0 special_bessel_y1 special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
        "special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_entr special_erfcx "
        "special_gammainc special_gammaincc special_hermite_polynomial_h special_hermite_polynomial_he "
        "special_i0e special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p special_log_ndtr "
        "special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 "
        "special_modified_bessel_k1 special_multigammaln special_ndtr special_ndtri "
        "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 "
        "special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w "
        "special_spherical_bessel_j0 special_xlog1py special_zeta "
    ),
    "spectrogram": (
        "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft "
    ),
    "splitting": (
        "dsplit hsplit tensor_split vsplit "
    ),
    "view_forms": (
        "alias_copy as_strided as_strided_ as_strided_copy as_strided_scatter detach_copy expand_copy "
        "permute_copy select_copy slice_copy slice_inverse split_copy split_with_sizes_copy squeeze squeeze_ "
        "squeeze_copy swapaxes_ swapdims_ t t_ t_copy transpose transpose_ transpose_copy unbind_copy "
        "unfold_copy unsafe_split_with_sizes unsqueeze unsqueeze_ unsqueeze_copy view_as_complex_copy "
        "view_as_real_copy view_copy "
    ),
    "weight_norm": (
        "_weight_norm _weight_norm_interface _weight_norm_interface_backward norm_except_dim "
    ),
}
METHODS = (
    "_coalesced_ _indices _nnz _values argwhere as_strided_ as_strided_scatter bincount ccol_indices "
    "cholesky cholesky_inverse cholesky_solve coalesce col_indices corrcoef cov cross crow_indices cummax "
    "cummin cumprod cumprod_ cumsum cumsum_ det diag diag_embed diagflat diff dsplit fill_diagonal_ "
    "float_power_ frexp gather geqrf hash_tensor histc histogram hsplit igamma igamma_ igammac igammac_ "
    "index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_ "
    "index_select indices inner inverse is_coalesced istft kron logcumsumexp logdet lu lu_solve "
    "masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matrix_exp mvlgamma mvlgamma_ "
    "nonzero nonzero_static orgqr ormqr pinverse polygamma_ put put_ qr renorm renorm_ row_indices "
    "scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ slice_inverse slogdet "
    "sparse_mask squeeze_ stft sum_to_size svd swapaxes_ swapdims_ t_ take take_along_dim tensor_split "
    "to_sparse to_sparse_coo to_sparse_csc to_sparse_csr trace transpose_ triangular_solve tril tril_ "
    "triu triu_ unique unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_ "
    "values vsplit "
)
